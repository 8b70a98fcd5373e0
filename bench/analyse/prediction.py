"""The peak memory of a call as the formulas of layer and implementation predict it."""

from collections.abc import Callable

from bench.plan.case import Case, Point

ITEM_BYTES = {"float32": 4}
"""Other dtypes take scratch that no formula of ours counts."""


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
    copies = 6 * x + s if point.num_heads > 1 else 4 * x + s
    return max(3 * x + 2 * s, copies, _end(point))


def _sdpa(point: Point) -> int:
    """The flash kernel's output is all that the core adds; the end of the layer is the peak."""
    return _end(point)


def _end(point: Point) -> int:
    """Return the peak of projection and skip: the projection, o, its merged copy or the product, and the sum."""
    return 6 * _projected(point)


def _projected(point: Point) -> int:
    return point.batch * point.num_tokens * point.channels


def _scores(point: Point) -> int:
    return point.batch * point.num_heads * point.num_tokens**2


FORMULAS: dict[str, Callable[[Point], int]] = {"eager": _eager, "sdpa": _sdpa, "sdpa_flash": _sdpa}
