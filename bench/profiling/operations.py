"""The floating-point operations of recorded events: products, convolutions and attention, from the shapes of inputs.

Sources of the formulas: torch/utils/flop_counter.py; the conventions of a causal mask are those of `bench.plan.layers`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

import torch
from torch.autograd.profiler_util import FunctionEvent

from bench.measure.inspection import with_children

FACTORS = {
    **dict.fromkeys(("mm", "bmm", "mv", "_scaled_mm"), 0),
    **dict.fromkeys(("addmm", "_addmm_activation", "baddbmm", "addbmm", "addmv"), 1),
}
"""The operators that multiply matrices, each with the place of the first factor among its inputs."""

SAME = {"self": "input", "X": "input", "W": "weight", "ORI_W": "weight", "grad_out_": "grad_out"}
"""Names of inputs that mean the same in the schemas of several operators."""

TOKENS_FIRST = ("_flash_attention", "_efficient_attention")
"""The beginnings of kernels of a GPU whose inputs are [B, N, H, D] in place of [B, H, N, D]."""

CAUSAL_TYPES = (1, 2)
"""The values of `custom_mask_type` that name a causal mask. Source: sdp::CustomMaskType in PyTorch."""

FORWARD_PRODUCTS, BACKWARD_PRODUCTS = (1, 1), (3, 2)
"""The products of attention over the width of keys, and over that of values: its backward pass computes scores anew."""

Inputs = Mapping[str, Any]
"""The shapes of tensors, and the other values, by their names in an operator's schema."""


def operations(event: FunctionEvent) -> int:
    """Return the operations that an event computed itself, 0 if they are not known.

    Of nested events, as those of a convolution, only the innermost one whose operations are known has any.
    """
    return 0 if any(map(_formula, with_children(event.cpu_children))) else _formula(event)


def _formula(event: FunctionEvent) -> int:
    namespace, _, name = event.name.partition("::")
    if namespace not in ("aten", "mkl", "mkldnn"):
        return 0
    if (first := FACTORS.get(name.removesuffix("_"))) is not None:
        return _product(event.input_shapes, first)
    if "conv" in name:
        return _convolution(name, _inputs(event))
    if "attention" in name:
        return _attention(name, _inputs(event))
    return _linear(_inputs(event)) if "mkl" in event.name else 0


def _inputs(event: FunctionEvent) -> Inputs:
    both = zip(event.input_shapes, event.concrete_inputs, strict=True)
    values = [shape if value is None else value for shape, value in both]
    return dict(zip(_names(event.name, len(values)), values, strict=False))


@cache
def _names(operator: str, count: int) -> tuple[str, ...]:
    """Return the names of an operator's inputs: of its overload with so many, else of the first."""
    overloads = [
        [each.name for each in schema.arguments] for schema in torch._C._jit_get_schemas_for_operator(operator)
    ]
    names = next((each for each in overloads if len(each) == count), overloads[0] if overloads else [])
    return tuple(SAME.get(name, name) for name in names)


def _product(shapes: Any, first: int) -> int:
    a, b = shapes[first : first + 2]
    return 2 * int(prod(a)) * (int(b[-1]) if len(b) == len(a) else 1) if a and b else 0


def _linear(of: Inputs) -> int:
    x, weight = of.get("input", ()), of.get("weight", ())
    return 2 * int(prod(x)) * int(weight[0]) if x and len(weight) == 2 else 0


def _convolution(name: str, of: Inputs) -> int:
    """Return the operations of a convolution: each weight is used at each place of the output.

    If it is transposed, at each place of the input. Its backward pass is as much for each gradient that it computes.
    """
    x, weight, gradient = of.get("input", ()), of.get("weight", ()), of.get("grad_output")
    if not x or len(weight) != len(x) or "stride" not in of:
        return 0
    if of.get("transposed") or "transpose" in name:
        places = x[2:]
    else:
        places = gradient[2:] if gradient else _places(x[2:], weight[2:], of)
    gradients: int = sum(of.get("output_mask", [True])[:2])
    return 2 * int(x[0] * prod(places) * prod(weight)) * gradients


def _places(sizes: Sequence[int], widths: Sequence[int], of: Inputs) -> Sequence[int]:
    """Return the places of the output in each dimension; none if the padding is given as a word."""
    given = (of.get(name, usual) for name, usual in (("stride", 1), ("padding", 0), ("dilation", 1)))
    strides, pads, steps = (_each(value, len(sizes)) for value in given)
    if len(pads) != len(sizes):
        return (0,)
    each = zip(sizes, widths, strides, pads, steps, strict=True)
    return [(size + 2 * pad - step * (width - 1) - 1) // stride + 1 for size, width, stride, pad, step in each]


def _each(value: int | Sequence[int], dimensions: int) -> Sequence[int]:
    values = [value] if isinstance(value, int) else value
    return values if len(values) == dimensions else [*values] * dimensions


def _attention(name: str, of: Inputs) -> int:
    """Return the operations of an attention kernel, half of them if its mask is causal: it may leave the others out."""
    query, key, value = (of.get(each, ()) for each in ("query", "key", "value"))
    if not len(query) == len(key) == len(value) == 4:
        return 0
    tokens, heads = (1, 2) if name.startswith(TOKENS_FIRST) else (2, 1)
    pairs: int = query[0] * query[heads] * query[tokens] * key[tokens]
    of_keys, of_values = BACKWARD_PRODUCTS if "grad_out" in of else FORWARD_PRODUCTS
    work = 2 * pairs * (of_keys * int(query[3]) + of_values * int(value[3]))
    return work // 2 if of.get("is_causal") or of.get("custom_mask_type") in CAUSAL_TYPES else work
