"""The work that a call can't do without: floating-point operations, and bytes in and out."""

from bench.plan.case import Point

ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}

BACKWARD = 2
"""A product's backward pass is two products of its size."""


def flops(point: Point) -> int:
    """Return the floating-point operations of the layer's matrix products, 2·M·N·K each.

    `vit`: the projection to q, k and v, the scores, the weighted values, the output projection;
    in the mode `train` with the gradients of both factors of each.
    `torch.utils.flop_counter` counts the same.
    """
    tokens = point.batch * point.num_tokens
    projections = 2 * tokens * point.channels * (3 * point.token_len + point.channels)
    attention = 2 * 2 * tokens * point.num_tokens * point.channels
    return (projections + attention) * (1 + BACKWARD if point.mode == "train" else 1)


def least_bytes(point: Point) -> int:
    """Return the bytes of input, weights and output, each moved once."""
    tokens = point.batch * point.num_tokens
    weights = point.channels * (3 * point.token_len + point.channels + 1)
    return (tokens * (point.token_len + point.channels) + weights) * ITEM_BYTES[point.dtype]
