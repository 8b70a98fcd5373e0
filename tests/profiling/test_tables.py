"""The operators of profiled calls, and their operations, which torch counts."""

import re
from dataclasses import replace
from typing import Any

import pytest
from torch.autograd.profiler_util import EventList, FunctionEvent
from torch.profiler import ProfilerActivity, profile

from bench.measure.recorded import Call
from bench.plan.case import Case, Point
from bench.plan.device import CPU
from bench.plan.layers import flops
from bench.profiling.tables import operators
from bench.profiling.worker import call_of
from bench.store.profile import ProfiledOperator
from tests.make.points import of_layer
from tests.profiling.taken import AT, TRAIN, captured

FLASH = "aten::_scaled_dot_product_flash_attention"


def operators_of(at: Point, implementation: str = "eager") -> dict[str, ProfiledOperator]:
    """Return the operators of an implementation by their names."""
    taken = captured(at, implementation)
    return {each.name: each for each in operators(taken.profiler, taken.calls, CPU)}


def test_operators_are_those_of_one_call() -> None:
    """By hand: two products of all heads; what took longest comes first, and no moment is counted twice."""
    by_name = operators_of(AT)
    assert (by_name["aten::bmm"].calls, by_name["aten::bmm"].flops) == (2, 2 * 2 * (2 * 64 * 32 * 64))
    assert by_name["aten::_softmax"].flops is None
    times = [each.self_s for each in by_name.values()]
    assert 0 < sum(times) <= captured(AT, "eager").profiled_s
    assert times == sorted(times, reverse=True)
    assert all(each.device_s is None and each.kernels == () for each in by_name.values())


@pytest.mark.parametrize(("at", "name"), [(TRAIN, "sdpa"), (replace(AT, lengths="uniform"), "loop")])
def test_calls_are_those_of_key_averages(at: Point, name: str) -> None:
    """A profile of one call by torch alone has as many calls of each operator."""
    with call_of(Case(at, name)) as call:
        call()
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            held = call()
    assert held is not None
    expected = {each.key: each.count for each in profiler.key_averages()}
    assert {each.name: each.calls for each in operators_of(at, name).values()} == expected


def test_a_profile_of_backward_passes_has_no_forward_pass() -> None:
    """A call's preparation runs before its label begins."""
    by_name = operators_of(replace(AT, mode="backward"))
    assert "aten::_softmax_backward_data" in by_name
    assert "aten::_softmax" not in by_name


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


def event(name: str, *inputs: Any, inside: tuple[FunctionEvent, ...] = ()) -> FunctionEvent:
    """Return a made-up event of an operator; lists are shapes of tensors."""
    is_shape = [isinstance(each, list) for each in inputs]
    shapes = [each if shape else [] for each, shape in zip(inputs, is_shape, strict=True)]
    values = [None if shape else each for each, shape in zip(inputs, is_shape, strict=True)]
    made = FunctionEvent(1, f"aten::{name}", 1, 0, 1, input_shapes=shapes, concrete_inputs=values)
    for child in inside:
        made.append_cpu_child(child)
        child.set_cpu_parent(made)
    return made


def counted(*host: FunctionEvent) -> dict[str, float | None]:
    """Return the operations of made-up operators, by their names."""
    events, nobody = EventList(), profile()
    events._tree_built = True
    nobody.events = lambda: events  # type: ignore[method-assign]
    return {each.name: each.flops for each in operators(nobody, [Call(event("whole"), host, (), {})], CPU)}


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
