"""The least memory that a case needs, so that what can't fit is not begun."""

from bench.plan.case import Case, Point
from bench.plan.layers import ITEM_BYTES, is_own, peak_bytes
from bench.plan.layers import least_bytes as tensors_bytes

REFERENCE_BYTES = 8
"""The reference is computed in float64."""

REFERENCE_SCORES = 2
"""At its softmax the reference holds the scores before and after."""

ALL_SCORES = ("eager", "stepwise", "sdpa_math", "mha_weights")
"""Implementations that hold the scores of all items and heads at once, whatever the layer and the mode."""

ONE_HEAD = ("manual",)
"""Implementations that hold the scores of one head at a time."""


def reference_bytes(point: Point) -> int:
    """Return the bytes that the reference of a point needs at least: the point's tensors, and one item's scores.

    Whether a layer of the user's own holds scores is unknown, so there they are left out.
    """
    scores = 0 if is_own(point.layer) else point.num_heads * point.num_tokens**2
    return tensors_bytes(point) + REFERENCE_SCORES * scores * REFERENCE_BYTES


def least_bytes(case: Case) -> int:
    """Return the bytes that a case needs at least on its device: input, weights, output, and what a call holds.

    Without a formula for what a call holds these are the scores, if the implementation is known to hold them.
    On another device than the CPU the host's memory is not needed for it: 0.
    """
    if case.point.device != "cpu":
        return 0
    predicted = peak_bytes(case)
    return tensors_bytes(case.point) + (_scores_bytes(case) if predicted is None else predicted)


def _scores_bytes(case: Case) -> int:
    point = case.point
    if is_own(point.layer):
        return 0
    head = point.batch * point.num_tokens**2 * ITEM_BYTES[point.dtype]
    if case.implementation in ALL_SCORES:
        return point.num_heads * head
    return head if case.implementation in ONE_HEAD else 0
