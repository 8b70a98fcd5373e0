"""One call as the profiler recorded it: its events on the host and on a GPU with their stages, spans and blocks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import MEMORY_EVENT_NAME, FunctionEvent, Kernel
from torch.profiler import profile

from bench.measure.inspection import COMPILED_GRAPH, METADATA, MICROSECOND_S
from bench.measure.memory import allocations
from bench.plan.device import Kind
from bench.store.profile import BACKWARD, FORWARD, KERNEL, OPERATOR, STAGE, STREAM, Block, Span

BACKWARD_NODE = "autograd::engine::evaluate_function: "
"""The prefix of the event in which autograd runs one node of the graph."""

NUMBERED_REGION = "Torch-Compiled Region"
"""The prefix of Dynamo's events for compiled code; a number follows that differs between compilations in a process."""

Place = tuple[str, str]
"""A stage's name and direction."""

LINE = " | "
"""What stands in a label between the name of a stage and the line of source."""

HOST = "host"
"""The lane of the thread that made the call."""

INDUCTOR_KERNEL = re.compile(r"(graph_\d+_)?(cpp|triton)_")
"""The beginning of the names that Inductor gives its kernels."""

RUNTIME = re.compile(r"cu(da)?[A-Z]\w*$")
"""The names of the CUDA runtime's and driver's functions, by which the host gives work to a GPU and waits for it."""

OF_PROFILER = frozenset(
    (
        "Activity Buffer Request", "Buffer Flush", "Command Buffer Full", "Driver Compiler", "Instrumentation",
        "Lazy Function Loading", "Resource", "Runtime Triggered Module Loading", "UVM Activity Init",
    )
)  # fmt: skip
"""The profiler's events for what CUDA and it itself do beside the call. Source: CUPTI's kinds of overhead in Kineto."""

WORTH_SHOWING = 1e-3
"""An operator in METADATA, such as a view, is left out if it took less than this share of the call."""


@dataclass(frozen=True)
class Call:
    """The label around a call, the host's events inside it, and the kernels and copies that a GPU ran for it.

    A launch is none of these events: its time is that of the operator which launched. `places` maps every host event
    that belongs to a stage to that stage, `lines` to the line of source, empty without one. `device` is in the order in
    which the GPU began.
    """

    whole: FunctionEvent
    host: tuple[FunctionEvent, ...]
    device: tuple[FunctionEvent, ...]
    places: Mapping[FunctionEvent, Place]
    lines: Mapping[FunctionEvent, str] = field(default_factory=dict)


def recorded(profiler: profile, label: str) -> Call:
    """Return the call with this label from a profile."""
    events = list(profiler.events() or [])
    (whole,) = (event for event in events if event.name == label and event.device_type == DeviceType.CPU)
    inside = sorted((event for event in events if _is_inside(event, whole)), key=lambda e: e.time_range.start)
    host = tuple(event for event in inside if not is_launch(event) and event.name not in OF_PROFILER)
    launches = {event.id for event in inside if is_launch(event)}  # CUDA gives a launch and its kernel the same number
    on_device = (event for event in events if event.device_type != DeviceType.CPU and not event.is_user_annotation)
    device = sorted((event for event in on_device if event.id in launches), key=lambda e: e.time_range.start)
    labels = _labels(host, whole)
    places = {event: (label.partition(LINE)[0], direction) for event, (label, direction) in labels.items()}
    lines = {event: label.partition(LINE)[2] for event, (label, _) in labels.items()}
    return Call(whole, host, tuple(device), places, lines)


def name(event: FunctionEvent) -> str:
    """Return an event's name without the number of the compilation."""
    if graph := COMPILED_GRAPH.match(event.name):
        return graph[1]
    return NUMBERED_REGION if event.name.startswith(NUMBERED_REGION) else str(event.name)


def is_label(event: FunctionEvent) -> bool:
    """Return whether an event is a label in the code, which names a stage."""
    return bool(event.is_user_annotation) and not COMPILED_GRAPH.match(event.name)


def is_launch(event: FunctionEvent) -> bool:
    """Return whether the host called the CUDA runtime or driver: to launch a kernel or a copy, or to wait."""
    return bool(RUNTIME.match(event.name))


def kernels_of(event: FunctionEvent) -> list[Kernel]:
    """Return the kernels and copies that an event itself launched; the profiler adds a label's own span to them."""
    return [kernel for kernel in event.kernels if kernel.name != event.name]


def duration_s(event: FunctionEvent) -> float:
    """Return the seconds that an event took."""
    return float(event.time_range.elapsed_us()) * MICROSECOND_S


def _is_inside(event: FunctionEvent, whole: FunctionEvent) -> bool:
    if event is whole or event.device_type != DeviceType.CPU or event.name == MEMORY_EVENT_NAME:
        return False
    # by time and not by parent: on a GPU autograd has its own thread
    return bool(event.time_range.start >= whole.time_range.start and event.time_range.end <= whole.time_range.end)


def _labels(host: Sequence[FunctionEvent], whole: FunctionEvent) -> Mapping[FunctionEvent, Place]:
    """Return the outermost label around each event, or in the backward pass that of its forward operator.

    A node of autograd's graph has the sequence number of the operator that made it. Earlier operators may have the same
    number, because they read the counter and make no node: the last one with a number made the node.
    """
    outermost = {event: _outermost(event, whole) for event in host}
    forward = {event: (top.name, FORWARD) for event, top in outermost.items() if is_label(top)}
    of_node = {(event.thread, event.sequence_nr): place for event, place in forward.items() if event.sequence_nr >= 0}
    backward = {
        event: (of_node[node][0], BACKWARD)
        for event, top in outermost.items()
        if str(top.name).startswith(BACKWARD_NODE) and (node := (top.fwd_thread, top.sequence_nr)) in of_node
    }
    return {**forward, **backward}


def _outermost(event: FunctionEvent, whole: FunctionEvent) -> FunctionEvent:
    *_, outermost = takewhile(lambda each: each is not whole, _around(event))
    return outermost


def _around(event: FunctionEvent | None) -> Iterator[FunctionEvent]:
    """Yield an event and those around it, from the inside."""
    while event is not None:
        yield event
        event = event.cpu_parent


@dataclass(frozen=True)
class Allocated:
    """A block and the stage that allocated it; `place` is None if the allocation was outside all stages.

    `line` is the line of source, empty if it isn't known.
    """

    block: Block
    place: Place | None
    line: str = ""


def allocated(profiler: profile, call: Call, kind: Kind) -> tuple[Allocated, ...]:
    """Return the blocks of a device's memory that a call allocated, in their order."""
    trace_start_ns = profiler.profiler.kineto_results.trace_start_ns()  # type: ignore[union-attr]
    by_id = {event.id: event for event in call.host}
    blocks: list[Allocated] = []
    live: dict[int, int] = {}
    for node in allocations(profiler):
        fields = node.extra_fields
        at_s = (node.start_time_ns - trace_start_ns) * 1e-9 - call.whole.time_range.start * MICROSECOND_S
        if fields.device.type != kind.name:
            continue
        if fields.alloc_size > 0:
            caller = _caller(node, by_id)
            place, line = (call.places.get(caller), call.lines.get(caller, "")) if caller else (None, "")
            block = Block(fields.alloc_size, _operator(caller), place[0] if place else "", at_s, None)
            live[fields.ptr] = len(blocks)
            blocks.append(Allocated(block, place, line))
        elif fields.ptr in live:
            index = live.pop(fields.ptr)
            blocks[index] = replace(blocks[index], block=replace(blocks[index].block, end_s=at_s))
    return tuple(blocks)


def _operator(caller: FunctionEvent | None) -> str:
    """Return the innermost operator that computes something, or the outermost if all only allocate.

    Empty if no operator called the allocator.
    """
    around = [event for event in _around(caller) if not is_label(event)]
    working = (event for event in around if event.name not in METADATA)
    return name(next(working, around[-1])) if around else ""


def _caller(node: Any, by_id: Mapping[int, FunctionEvent]) -> FunctionEvent | None:
    """Return the innermost event of the call that was running at an allocation, None outside all events."""
    while node.parent is not None:
        node = node.parent
        if node.correlation_id in by_id:
            return by_id[node.correlation_id]
    return None


def spans(call: Call) -> tuple[Span, ...]:
    """Return the spans of the call, the host's before the GPU's, in the order in which they begin; parents first."""
    shortest_s = WORTH_SHOWING * duration_s(call.whole)
    events = [event for event in call.host if event.name not in METADATA or duration_s(event) >= shortest_s]
    lanes, shown = _lanes(call), set(events)
    on_host = [
        _span(event, call, _kind(event), lanes[event.thread], sum(each in shown for each in _around(event.cpu_parent)))
        for event in events
    ]
    return (*on_host, *(_span(event, call, KERNEL, f"{STREAM}{event.device_resource_id}", 0) for event in call.device))


def _span(event: FunctionEvent, call: Call, kind: str, lane: str, depth: int) -> Span:
    start_s = float(event.time_range.start - call.whole.time_range.start) * MICROSECOND_S
    return Span(name(event), kind, lane, depth, start_s, duration_s(event))


def _kind(event: FunctionEvent) -> str:
    if is_label(event):
        return STAGE
    return KERNEL if INDUCTOR_KERNEL.match(event.name) else OPERATOR


def _lanes(call: Call) -> Mapping[int, str]:
    """Return a name for each thread of the host; with a GPU autograd has its own thread."""
    threads = list(dict.fromkeys([call.whole.thread, *(event.thread for event in call.host)]))
    return {thread: HOST if number == 0 else f"{HOST} thread {number + 1}" for number, thread in enumerate(threads)}
