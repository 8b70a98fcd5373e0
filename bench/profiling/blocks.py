"""The memory blocks that one call allocated, each with the operator and the stage that allocated it."""

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
    """A block and the stage that allocated it; `place` is None if the allocation was outside all stages."""

    block: Block
    place: Place | None


def allocated(profiler: profile, call: Call, device: str) -> tuple[Allocated, ...]:
    """Return the blocks of a device's memory in the order of their allocation.

    Blocks that were allocated before the call are left out.
    """
    trace_start_ns = profiler.profiler.kineto_results.trace_start_ns()  # type: ignore[union-attr]
    known = {event.id: event for event in call.host}
    blocks: list[Allocated] = []
    live: dict[int, int] = {}
    for node in allocations(profiler):
        fields = node.extra_fields
        at_s = (node.start_time_ns - trace_start_ns) * NANOSECOND_S - call.whole.time_range.start * MICROSECOND_S
        if fields.device.type != device.partition(":")[0]:
            continue
        if fields.alloc_size > 0:
            live[fields.ptr] = len(blocks)
            blocks.append(_allocated(fields.alloc_size, at_s, _caller(node, known), call.places))
        elif fields.ptr in live:
            index = live.pop(fields.ptr)
            blocks[index] = replace(blocks[index], block=replace(blocks[index].block, end_s=at_s))
    return tuple(blocks)


def _allocated(
    size: int, start_s: float, caller: FunctionEvent | None, places: Mapping[FunctionEvent, Place]
) -> Allocated:
    place = None if caller is None else places.get(caller)
    stage = "" if place is None else place[0]
    return Allocated(Block(size, _operator(caller), stage, start_s, None), place)


def _operator(caller: FunctionEvent | None) -> str:
    """Return the innermost operator that computes something; one that only allocates for its caller is skipped.

    If all of them only allocate, it is the outermost; empty if no operator called the allocator.
    """
    operators = [event for event in _with_parents(caller) if not is_label(event)]
    computing = [event for event in operators if event.name not in METADATA]
    owner = computing[:1] or operators[-1:]
    return name(owner[0]) if owner else ""


def _with_parents(event: FunctionEvent | None) -> Iterator[FunctionEvent]:
    while event is not None:
        yield event
        event = event.cpu_parent


def _caller(node: Any, known: Mapping[int, FunctionEvent]) -> FunctionEvent | None:
    """Return the innermost event of the call that was running at an allocation, None if there was none."""
    while node.parent is not None:
        node = node.parent
        if node.correlation_id in known:
            return known[node.correlation_id]
    return None
