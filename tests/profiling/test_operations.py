"""The operations of events: each operator has its own, and they add up to what torch counts."""

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from bench.plan.case import Point
from bench.plan.device import CPU
from bench.plan.layers import flops
from bench.profiling.capture import operators
from bench.profiling.operations import operations
from tests.make.points import of_layer
from tests.profiling.taken import AT, TRAIN, captured

FLASH = "aten::_scaled_dot_product_flash_attention_for_cpu"


def of_operators(at: Point, implementation: str) -> dict[str, int]:
    """Return the operations of the operators that have any."""
    return {
        each.name: int(each.flops) for each in operators(captured(at, implementation).middle_half, CPU) if each.flops
    }


@pytest.mark.parametrize(
    ("at", "working"),
    [
        (AT, {"mm", "addmm", "bmm"}),
        (replace(TRAIN, dtype="bfloat16"), {"mm", "addmm", "bmm"}),
        (of_layer("conv", mode="train"), {"bmm", "convolution", "convolution_backward"}),
        (of_layer("patch"), {"mm", "addmm", "bmm", "convolution"}),
    ],
    ids=lambda value: value.name if isinstance(value, Point) else "",
)
def test_only_products_have_operations_and_they_add_up_to_what_torch_counts(at: Point, working: set[str]) -> None:
    """Copies, additions and what only hands the work on have none. A convolution is one of its backends'."""
    of = of_operators(at, "eager")
    names = {re.sub(r"\w*conv[^_]*(_forward)?", "convolution", name.removeprefix("aten::")) for name in of}
    assert names == working
    assert sum(of.values()) == flops(at)


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_the_operations_of_the_flash_kernel_follow_from_its_shapes(mask: str) -> None:
    """A causal mask halves them, as in the row of the case; the backward pass has five products, not two."""
    at = replace(TRAIN, mask=mask)
    of, of_inference = of_operators(at, "sdpa"), of_operators(replace(AT, mask=mask), "sdpa")
    assert sum(of_inference.values()) == flops(replace(AT, mask=mask))
    assert of[FLASH] == of_inference[FLASH] == 4 * 2 * 64 * 64 * 32 // (2 if mask == "causal" else 1)
    assert of[f"{FLASH}_backward"] == 5 * of[FLASH] // 2


def event(name: str, *inputs: Any, inside: tuple[FunctionEvent, ...] = ()) -> FunctionEvent:
    """Return the event of an operator that nobody called: lists are shapes of tensors."""
    is_shape = [isinstance(each, list) for each in inputs]
    shapes = [each if shape else [] for each, shape in zip(inputs, is_shape, strict=True)]
    values = [None if shape else each for each, shape in zip(inputs, is_shape, strict=True)]
    made = FunctionEvent(1, name, 1, 0, 1, input_shapes=shapes, concrete_inputs=values)
    for child in inside:
        made.append_cpu_child(child)
    return made


Q, K, V = [2, 4, 10, 8], [2, 4, 12, 8], [2, 4, 12, 6]
OF_Q, OF_K, OF_V = ([each[0], each[2], each[1], each[3]] for each in (Q, K, V))
"""The same with the tokens before the heads."""

PAIRS = 2 * 4 * 10 * 12


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        (
            ("_scaled_dot_product_flash_attention", Q, K, V, 0.0, False),
            ("_flash_attention_forward", OF_Q, OF_K, OF_V, None, None, 10, 12, 0.0, False, False),
            2 * PAIRS * (8 + 6),
        ),
        (
            ("_scaled_dot_product_efficient_attention", Q, K, V, None, True, 0.0, True),
            ("_efficient_attention_forward", OF_Q, OF_K, OF_V, None, None, None, 10, 12, 0.0, 1),
            PAIRS * (8 + 6),
        ),
        (
            ("_scaled_dot_product_cudnn_attention", Q, K, V, None, True, 0.0, False),
            ("_cudnn_attention_forward", Q, K, V, None, None, None, 10, 12, True, 0.0, False),
            2 * PAIRS * (8 + 6),
        ),
        (
            ("_scaled_dot_product_flash_attention_backward", Q, Q, K, V),
            ("_flash_attention_backward", OF_Q, OF_Q, OF_K, OF_V, OF_Q, [2], None, None, 10, 12, 0.0, False),
            2 * PAIRS * (3 * 8 + 2 * 6),
        ),
    ],
)
def test_of_nested_attention_the_kernel_has_the_operations(
    outer: tuple[Any, ...], inner: tuple[Any, ...], expected: int
) -> None:
    """A GPU's kernels are launched by the inner operator, whose inputs may have the tokens before the heads."""
    kernel = event(f"aten::{inner[0]}", *inner[1:])
    assert operations(kernel) == expected
    assert operations(event(f"aten::{outer[0]}", *outer[1:])) == expected
    assert operations(event(f"aten::{outer[0]}", *outer[1:], inside=(kernel,))) == 0


@pytest.mark.parametrize(
    ("module", "sizes"),
    [
        (nn.Conv1d(8, 6, 3, stride=2, padding=1), [11]),
        (nn.Conv2d(8, 16, 3, padding="same", dilation=2, groups=4), [11, 7]),
        (nn.Conv2d(8, 4, (3, 1), stride=(2, 1), bias=False), [11, 7]),
        (nn.ConvTranspose2d(8, 4, 3, stride=2), [11, 7]),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_convolutions_have_what_torch_counts(module: nn.Module, sizes: list[int], dtype: torch.dtype) -> None:
    """Whichever backend computes them; each of the two gradients is as much as the output."""
    module = module.to(dtype)
    x = torch.randn(2, 8, *sizes, dtype=dtype, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        module(x)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        module(x).sum().backward()
    assert sum(map(operations, profiler.events() or [])) == 3 * counter.get_total_flops() > 0


def test_products_of_other_operators_and_of_vectors() -> None:
    """Inductor's linear layers with packed weights, a product of a matrix and a vector, and what is no product."""
    assert operations(event("mkl::_mkl_linear", [5, 4], [99, 1], [3, 4], None, 5)) == 2 * 5 * 4 * 3
    assert operations(event("mkldnn::_linear_pointwise", [5, 4], [5, 3], [3, 4], None, "add")) == 2 * 5 * 4 * 3
    assert operations(event("aten::mv", [5, 4], [4])) == operations(event("aten::addmv_", [5], [5, 4], [4])) == 40
    for name in ("aten::mul", "aten::linear", "aten::copy_", "mine::mm", "mine::attention"):
        assert operations(event(name, [5, 4], [4, 5], [4])) == 0
