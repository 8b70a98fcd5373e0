"""The time, memory and work of each stage of the layer in a call, as means over several calls."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from bench.plan.case import Point
from bench.plan.layers import BACKWARD_PRODUCTS, ITEM_BYTES, steps
from bench.profiling.pairs import Pair
from bench.profiling.recorded import MICROSECOND_S, Call, Place, duration_s
from bench.store.profile import FORWARD, Stage


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


def stages(pairs: Sequence[Pair], point: Point) -> tuple[Stage, ...]:
    """Return the stages of the profiled calls in the order in which they begin, forward and backward."""
    times: dict[Place, float] = defaultdict(float)
    sizes: dict[Place, int] = defaultdict(int)
    for pair in pairs:
        for place, time_s in _times(pair.call, point.device):
            times[place] += time_s
    for each in (each for pair in pairs for each in pair.blocks):
        if each.place:
            sizes[each.place] += each.block.bytes
    return tuple(
        Stage(
            *place,
            time_s=time_s / len(pairs),
            allocated_bytes=sizes[place] / len(pairs),
            moved_bytes=moved_bytes(point, *place),
            flops=flops(point, *place),
        )
        for place, time_s in times.items()
    )


def _times(call: Call, device: str) -> Iterator[tuple[Place, float]]:
    """Yield the parts of each stage's seconds: its outermost events, or on a GPU the kernels that it launched."""
    for event, place in call.places.items():
        if device != "cpu":
            yield place, sum(kernel.duration for kernel in event.kernels) * MICROSECOND_S
        elif event.cpu_parent is None or event.cpu_parent not in call.places:
            yield place, duration_s(event)
