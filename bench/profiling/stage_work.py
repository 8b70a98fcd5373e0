"""The work of each stage of a layer: floating-point operations, and bytes that must be moved."""

from bench.plan.case import Point
from bench.plan.layers import BACKWARD_PRODUCTS, ITEM_BYTES, steps
from bench.store.profile import FORWARD


def flops(point: Point, stage: str, direction: str) -> int | None:
    """Return the floating-point operations of a stage's matrix products, None for a stage without one."""
    step = steps(point).get(stage)
    if step is None or step.multiplications is None:
        return None
    return 2 * step.multiplications * (1 if direction == FORWARD else BACKWARD_PRODUCTS)


def moved_bytes(point: Point, stage: str, direction: str) -> int | None:
    """Return the bytes of a stage's inputs and outputs, each moved once; None for a stage without a formula.

    The sum of the gradients of a tensor that was used twice belongs to no stage.
    """
    step = steps(point).get(stage)
    if step is None:
        return None
    return (step.forward if direction == FORWARD else step.backward) * ITEM_BYTES[point.dtype]
