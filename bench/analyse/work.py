"""The work that a call can't do without: floating-point operations, and bytes in and out."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.plan.case import Point
from bench.plan.layers import KEY_SHARE

ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}

BACKWARD = 2
"""A product's backward pass is two products of its size."""


@dataclass(frozen=True)
class Size:
    """What the formulas of layers.md need of a layer, in numbers of elements.

    `projections` are the weights of what is applied to every token, `keys` and `values` the widths of all heads
    together, `x` and `y` the elements of input and output, `weights` all parameters.
    """

    projections: int
    keys: int
    values: int
    x: int
    y: int
    weights: int


def flops(point: Point) -> int:
    """Return the floating-point operations of the layer's matrix products, 2·M·N·K each.

    Those are the projections, the scores and the weighted values; in the mode `train` with the gradients of both
    factors of each. `torch.utils.flop_counter` counts the same.
    """
    tokens, size = point.batch * point.num_tokens, SIZES[point.layer](point)
    attention = 2 * tokens * point.num_tokens * (size.keys + size.values)
    return (2 * tokens * size.projections + attention) * (1 + BACKWARD if point.mode == "train" else 1)


def least_bytes(point: Point) -> int:
    """Return the bytes of input, weights and output, each moved once."""
    size = SIZES[point.layer](point)
    return (size.x + size.y + size.weights) * ITEM_BYTES[point.dtype]


def _vit(point: Point) -> Size:
    tokens, dim, chan = point.batch * point.num_tokens, point.token_len, point.channels
    projections = 3 * dim * chan + chan**2
    biases = chan + (3 * chan if point.qkv_bias else 0)
    return Size(projections, chan, chan, tokens * dim, tokens * chan, projections + biases)


def _self(point: Point) -> Size:
    tokens, dim, keys, values = point.batch * point.num_tokens, point.token_len, point.key_channels, point.channels
    assert keys is not None  # a plan gives it to every point of this layer
    projections = dim * (2 * keys + values)
    return Size(projections, keys, values, tokens * dim, tokens * values, projections)


def _patch(point: Point) -> Size:
    tokens, embedded = point.batch * point.num_tokens, point.channels
    projections = point.token_len * embedded + 4 * embedded**2
    return Size(
        projections, embedded, embedded, tokens * point.token_len, tokens * embedded, projections + 5 * embedded
    )


def _conv(point: Point) -> Size:
    elements, channels = point.batch * point.num_tokens * point.channels, point.channels
    keys = channels // KEY_SHARE
    projections = channels * (2 * keys + channels)
    return Size(projections, keys, channels, elements, elements, projections + 2 * keys + channels + 1)


SIZES: dict[str, Callable[[Point], Size]] = {"vit": _vit, "self": _self, "patch": _patch, "conv": _conv}
