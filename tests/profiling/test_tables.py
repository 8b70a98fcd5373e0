"""The operators and the stages of profiled calls, and their operations, which torch counts."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode

from bench.measure.recorded import Call, recorded
from bench.plan.case import Point
from bench.plan.device import CPU
from bench.plan.layers import flops
from bench.profiling.capture import Pair
from bench.profiling.tables import operators, stages
from bench.store.profile import BACKWARD, FORWARD, ProfiledOperator, Stage
from tests.make.points import of_layer
from tests.profiling.taken import AT, TRAIN, captured

SCORES, VALUES = 4 * (2 * 4 * 64 * 64), 4 * (2 * 64 * 32)
"""Bytes of the scores, and of the values of all heads."""

MASKED = replace(AT, mask="causal")

FLASH = "aten::_scaled_dot_product_flash_attention"


def operators_of(at: Point, implementation: str = "eager") -> dict[str, ProfiledOperator]:
    """Return the operators of an implementation by their names."""
    return {each.name: each for each in operators(captured(at, implementation).middle_half, CPU)}


def test_operators_are_those_of_one_call() -> None:
    """By hand: two products of all heads, the first with N² results and the second with as many as queries.

    No moment is counted twice, what took longest comes first, and a CPU has neither device time nor kernels.
    """
    by_name = operators_of(AT)
    product = by_name["aten::bmm"]
    assert product.calls == 2
    assert product.flops == 2 * 2 * (2 * 64 * 32 * 64)
    assert product.allocated_bytes == SCORES + VALUES
    assert by_name["aten::clone"].allocated_bytes == 4 * VALUES  # q, k, v and the merged heads
    assert by_name["aten::_softmax"].flops is None
    times = [each.self_s for each in by_name.values()]
    assert 0 < sum(times) <= captured(AT, "eager").profiled_s
    assert times == sorted(times, reverse=True)
    assert all(each.device_s is None and each.kernels == () for each in by_name.values())


def test_a_profile_of_backward_passes_has_no_forward_pass() -> None:
    """What a call prepares is made before the profile begins."""
    by_name = operators_of(replace(AT, mode="backward"))
    assert "aten::_softmax_backward_data" in by_name
    assert "aten::_softmax" not in by_name


def test_calls_and_bytes_are_exact_and_show_an_extra_copy() -> None:
    """Two implementations of the same operators have the same; a clone adds a copy, and the bytes of its output."""
    eager, twin, copying = (
        {each.name: (each.calls, each.allocated_bytes) for each in operators_of(AT, name).values()}
        for name in ("eager", "tests.foreign:twin", "tests.foreign:copying")
    )
    assert twin == eager
    assert copying["aten::copy_"][0] == twin.get("aten::copy_", (0, 0))[0] + 1
    assert copying["aten::clone"][1] == twin.get("aten::clone", (0, 0))[1] + VALUES
    assert all(copying[name] == twin[name] for name in ("aten::mm", "aten::bmm", "aten::_softmax"))


@pytest.mark.parametrize(
    ("at", "working"),
    [
        (replace(TRAIN, dtype="bfloat16"), {"mm", "addmm", "bmm"}),
        (of_layer("conv", mode="train"), {"bmm", "convolution", "convolution_backward"}),
        (of_layer("patch"), {"mm", "addmm", "bmm", "convolution"}),
    ],
    ids=lambda value: value.name if isinstance(value, Point) else "",
)
def test_only_products_have_operations_and_they_add_up_to_those_of_the_layer(at: Point, working: set[str]) -> None:
    """Copies, additions and what only hands the work on have none. A convolution is one of its backends'."""
    of = {name: each.flops for name, each in operators_of(at).items() if each.flops}
    names = {re.sub(r"\w*conv[^_]*(_forward)?", "convolution", name.removeprefix("aten::")) for name in of}
    assert names == working
    assert sum(of.values()) == flops(at)


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_torch_counts_all_scores_of_a_fused_kernel_and_those_that_its_backward_pass_computes_anew(mask: str) -> None:
    """A causal mask takes none away, though the row of the case has half; the backward pass has five products."""
    of = operators_of(replace(TRAIN, mask=mask), "sdpa")
    assert of[f"{FLASH}_for_cpu"].flops == 4 * 2 * 64 * 64 * 32
    assert of[f"{FLASH}_for_cpu_backward"].flops == 5 * 2 * 2 * 64 * 64 * 32


def event(name: str, *inputs: Any, inside: tuple[FunctionEvent, ...] = ()) -> FunctionEvent:
    """Return the event of an operator that nobody called: lists are shapes of tensors."""
    is_shape = [isinstance(each, list) for each in inputs]
    shapes = [each if shape else [] for each, shape in zip(inputs, is_shape, strict=True)]
    values = [None if shape else each for each, shape in zip(inputs, is_shape, strict=True)]
    made = FunctionEvent(1, f"aten::{name}", 1, 0, 1, input_shapes=shapes, concrete_inputs=values)
    for child in inside:
        made.append_cpu_child(child)
        child.set_cpu_parent(made)
    return made


def counted(*host: FunctionEvent) -> dict[str, float | None]:
    """Return the operations of operators that nobody called, by their names."""
    nobody: Any = None
    call = Call(event("whole"), host, (), {})
    return {each.name: each.flops for each in operators([Pair(1.0, 1.0, (0, 0), 0, call, Counter(), nobody)], CPU)}


@pytest.mark.parametrize(
    ("name", "inputs", "inner"),
    [
        ("flash", (0.0, False), "_flash_attention_forward"),
        ("efficient", (None, True, 0.0, True), "_efficient_attention_forward"),
        ("cudnn", (None, True, 0.0, False), "_cudnn_attention_forward"),
    ],
)
def test_of_nested_attention_the_kernel_has_the_operations(name: str, inputs: tuple[Any, ...], inner: str) -> None:
    """A GPU's kernels are launched by the inner operator, whose inputs may have the tokens before the heads."""
    q, kv = [2, 4, 10, 8], [2, 4, 12, 8]
    kernel = event(inner, [2, 10, 4, 8], [2, 12, 4, 8], [2, 12, 4, 8], None, None, 10, 12, 0.0, False, False)
    outer = event(f"_scaled_dot_product_{name}_attention", q, kv, kv, *inputs, inside=(kernel,))
    assert counted(outer, kernel) == {kernel.name: 4 * (2 * 4 * 10 * 12) * 8, outer.name: None}


def test_what_shapes_do_not_tell_has_no_operations() -> None:
    """A product in float8 has none, nor has what is no product."""
    for made in (event("_scaled_mm", [16, 16], [16, 16], [], []), event("mul", [5, 4], [5, 4]), event("mm")):
        assert counted(made) == {made.name: None}


@pytest.mark.parametrize(
    ("module", "sizes"),
    [
        (nn.Conv1d(8, 6, 3, stride=2, padding=1), [11]),
        (nn.Conv2d(8, 16, 3, padding="same", dilation=2, groups=4), [11, 7]),
        (nn.ConvTranspose2d(8, 4, 3, stride=2).bfloat16(), [11, 7]),
    ],
    ids=str,
)
def test_convolutions_have_what_torch_counts(module: nn.Module, sizes: list[int]) -> None:
    """Whichever backend computes them, forward and backward."""
    x = torch.randn(2, 8, *sizes, dtype=next(module.parameters()).dtype, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        module(x).sum().backward()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler, record_function("call"):
        module(x).sum().backward()
    of = counted(*recorded(profiler, "call").host)
    assert sum(each or 0 for each in of.values()) == counter.get_total_flops() > 0


def stages_of(at: Point, implementation: str = "stepwise") -> dict[tuple[str, str], Stage]:
    """Return the stages of a case by name and direction."""
    return {(each.name, each.direction): each for each in stages(captured(at, implementation).middle_half, at)}


@pytest.mark.parametrize("at", [AT, TRAIN, MASKED], ids=["inference", "train", "masked"])
def test_stages_come_in_order_and_add_up_to_no_more_than_the_call(at: Point) -> None:
    """A stage takes time, and no moment belongs to two of them; the backward pass goes through them in reverse."""
    of_call = stages_of(at)
    times = [stage.time_s for stage in of_call.values()]
    assert min(times) > 0
    assert sum(times) <= captured(at, "stepwise").profiled_s
    names = [name for name, direction in of_call if direction == FORWARD]
    assert (names[0], names[-1], len(names)) == ("qkv projection", "skip", len({*names}))
    assert [name for name, direction in of_call if direction == BACKWARD] == (names[::-1] if at is TRAIN else [])


def test_each_stage_has_its_bytes_and_its_work() -> None:
    """By hand: scores and softmax allocate the scores, the first beside copies of queries and keys.

    Its FLOPs come from its operators, and are those of the layer in all.
    """
    of_call, train = stages_of(AT), stages_of(TRAIN)
    assert sum(each.flops or 0 for each in of_call.values()) == flops(AT)
    assert of_call["softmax", FORWARD].allocated_bytes == SCORES
    assert of_call["scores", FORWARD].allocated_bytes == SCORES + 2 * VALUES
    assert of_call["qkv projection", FORWARD].allocated_bytes == 3 * VALUES
    assert of_call["split heads", FORWARD].allocated_bytes == 0
    assert train["softmax", BACKWARD].allocated_bytes == SCORES
    assert train["scores", BACKWARD].flops == 2 * (train["scores", FORWARD].flops or 0) > 0
    assert train["softmax", FORWARD].flops is None
    assert stages_of(AT, "eager") == {}
