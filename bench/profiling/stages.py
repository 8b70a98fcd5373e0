"""The time, memory and work of each stage of the layer in a call, as means over several calls."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from bench.plan.case import Point
from bench.profiling import stage_work
from bench.profiling.pairs import Pair
from bench.profiling.recorded import MICROSECOND_S, Call, Place, duration_s
from bench.store.profile import Stage


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
            moved_bytes=stage_work.moved_bytes(point, *place),
            flops=stage_work.flops(point, *place),
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
