"""The peak memory of a call as the formulas of layer and implementation predict it."""

from collections.abc import Callable

from bench.plan.case import Case, Point

ITEM_BYTES = {"float32": 4}
"""Other dtypes take scratch that no formula of ours counts."""

BLOCK_TOKENS = 128
"""Keys per block of `online`, as `impls.attend.online` has it."""


def peak_bytes(case: Case) -> int | None:
    """Return the bytes that one call should hold at its peak beyond input and weights, None without a formula.

    The formulas count tensors of the `vit` layer in inference on the CPU:
    S = B·H·N² scores, X = B·N·chan one of q, k, v, which live as one projection of 3·X throughout.
    """
    point = case.point
    formula = FORMULAS.get(case.implementation)
    if formula is None or (point.layer, point.mode, point.device) != ("vit", "inference", "cpu"):
        return None
    return formula(point) * ITEM_BYTES[point.dtype] if point.dtype in ITEM_BYTES else None


def _eager(point: Point) -> int:
    """At the softmax two score tensors live; at the first product q·scale, its copy and that of k beside one."""
    x, s = _projected(point), _scores(point)
    copies = (6 if _is_split(point) else 4) * x + s
    return max(3 * x + 2 * s, copies, _end(point))


def _sdpa(point: Point) -> int:
    """Beside projection and output the flash kernel holds a sum for each query, and scratch for each thread."""
    return max(4 * _projected(point) + _flash(point), _end(point))


def _flash(point: Point) -> int:
    """A sum for each query; for each thread a block of scores with its maxima, sums and outputs.

    Source: PyTorch, aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    tokens, heads = point.num_tokens, point.num_heads
    queries = min(tokens, 256 if tokens >= 768 else 64 if tokens >= 192 else 32)
    scratch = queries * (min(tokens, 512) + 2 + point.channels // heads)
    return point.batch * heads * tokens + point.threads * scratch


def _stepwise(point: Point) -> int:
    """The scaled queries and both score tensors keep their names until the values are weighted by a copy of v."""
    x, s = _projected(point), _scores(point)
    return max((6 if _is_split(point) else 5) * x + 2 * s, _end(point))


def _manual(point: Point) -> int:
    """At the last head's division live raw, shifted and normalised scores of one head, a sum, and earlier outputs."""
    x, head = _projected(point), _scores(point) // point.num_heads
    earlier = x - x // point.num_heads
    return max(3 * x + earlier + 3 * head + point.batch * point.num_tokens, _end(point))


def _online(point: Point) -> int:
    """Beside projection, scaled queries and output live a block's scores thrice and the last weights, or 2 and 3 more.

    The former at the exponential, the latter, scores, weights and outputs, where the output is corrected.
    """
    x, lines = _projected(point), point.batch * point.num_heads * point.num_tokens
    most, before = 0, 0
    for first in range(0, point.num_tokens, BLOCK_TOKENS):
        block = lines * min(BLOCK_TOKENS, point.num_tokens - first)
        at_exponential = 5 * x + 3 * block + before + (4 if before else 3) * lines
        at_output = 8 * x + 2 * block + 4 * lines
        most, before = max(most, at_exponential, at_output), block
    return most


def _mha(point: Point) -> int:
    """The fast path, which asks for an even number of heads, holds all scores once; flash its scratch."""
    x = _projected(point)
    return max(7 * x, 4 * x + _scores(point) if point.num_heads % 2 == 0 else 5 * x + _flash(point))


def _is_split(point: Point) -> bool:
    """Return whether batch and heads are two strides in q, k and v, so that a product must copy them."""
    return point.batch > 1 and point.num_heads > 1


def _end(point: Point) -> int:
    """Return the peak of projection and skip: the projection, o, its merged copy or the product, and the sum."""
    return 6 * _projected(point)


def _projected(point: Point) -> int:
    return point.batch * point.num_tokens * point.channels


def _scores(point: Point) -> int:
    return point.batch * point.num_heads * point.num_tokens**2


FORMULAS: dict[str, Callable[[Point], int]] = {
    "eager": _eager,
    "stepwise": _stepwise,
    "manual": _manual,
    "online": _online,
    "sdpa": _sdpa,
    "sdpa_flash": _sdpa,
    "mha": _mha,
}
