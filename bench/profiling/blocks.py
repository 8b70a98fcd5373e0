"""The memory blocks that one call allocated, each with its operator and stage."""

from collections.abc import Mapping
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
    """Return the blocks of a device's memory that a call allocated, in their order."""
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
            caller = _caller(node, known)
            place = None if caller is None else call.places.get(caller)
            block = Block(fields.alloc_size, _operator(caller), place[0] if place else "", at_s, None)
            live[fields.ptr] = len(blocks)
            blocks.append(Allocated(block, place))
        elif fields.ptr in live:
            index = live.pop(fields.ptr)
            blocks[index] = replace(blocks[index], block=replace(blocks[index].block, end_s=at_s))
    return tuple(blocks)


def _operator(caller: FunctionEvent | None) -> str:
    """Return the innermost operator that computes something, or the outermost if all only allocate.

    Empty if no operator called the allocator.
    """
    outermost = ""
    while caller is not None:
        if not is_label(caller):
            outermost = name(caller)
            if caller.name not in METADATA:
                return outermost
        caller = caller.cpu_parent
    return outermost


def _caller(node: Any, known: Mapping[int, FunctionEvent]) -> FunctionEvent | None:
    """Return the innermost event of the call that was running at an allocation, None outside all events."""
    while node.parent is not None:
        node = node.parent
        if node.correlation_id in known:
            return known[node.correlation_id]
    return None
