"""The blocks of memory that one call allocated, each with who allocated it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import profile

from bench.measure.dispatch import METADATA
from bench.measure.memory import allocations
from bench.profiling.recorded import MICROSECOND_S, Call, Place, is_label, name
from bench.store.profile import Block

NANOSECOND_S = 1e-9
"""The unit of times in the profiler's tree of events."""


@dataclass(frozen=True)
class Allocated:
    """A block, and the place of its allocation among the stages, None outside of all."""

    block: Block
    place: Place | None


def allocated(profiler: profile, call: Call, device: str) -> tuple[Allocated, ...]:
    """Return the blocks of a device's memory in the order of their allocation.

    What was allocated before the call is none of them, and freeing it has no effect.
    """
    trace_start_ns = profiler.profiler.kineto_results.trace_start_ns()  # type: ignore[union-attr]
    known = {event.id: event for event in call.host}
    found: list[Allocated] = []
    living: dict[int, int] = {}
    for node in allocations(profiler):
        fields = node.extra_fields
        at_s = (node.start_time_ns - trace_start_ns) * NANOSECOND_S - call.whole.time_range.start * MICROSECOND_S
        if fields.device.type != device.partition(":")[0]:
            continue
        if fields.alloc_size > 0:
            living[fields.ptr] = len(found)
            found.append(_allocated(fields.alloc_size, at_s, _caller(node, known), call.places))
        elif fields.ptr in living:
            index = living.pop(fields.ptr)
            found[index] = replace(found[index], block=replace(found[index].block, end_s=at_s))
    return tuple(found)


def _allocated(
    size: int, start_s: float, caller: FunctionEvent | None, places: Mapping[FunctionEvent, Place]
) -> Allocated:
    place = None if caller is None else places.get(caller)
    stage = "" if place is None else place[0]
    return Allocated(Block(size, _operator(caller), stage, start_s, None), place)


def _operator(caller: FunctionEvent | None) -> str:
    """Return the innermost operator that wanted the memory for itself, not to hand it to the one that called it."""
    operators = [event for event in _outwards(caller) if not is_label(event)]
    worked = [event for event in operators if event.name not in METADATA]
    chosen = worked[:1] or operators[-1:]
    return name(chosen[0]) if chosen else ""


def _outwards(event: FunctionEvent | None) -> Iterator[FunctionEvent]:
    while event is not None:
        yield event
        event = event.cpu_parent


def _caller(node: Any, known: Mapping[int, FunctionEvent]) -> FunctionEvent | None:
    """Return the event of the call that the allocator was asked in, None where none of ours was at work."""
    while node.parent is not None:
        node = node.parent
        if node.correlation_id in known:
            return known[node.correlation_id]
    return None
