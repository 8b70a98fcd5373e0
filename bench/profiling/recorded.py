"""One call as the profiler recorded it: what ran on the host, on a GPU, and in which stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import MEMORY_EVENT_NAME, FunctionEvent
from torch.profiler import profile

from bench.measure.dispatch import COMPILED_GRAPH
from bench.store.profile import BACKWARD, FORWARD

MICROSECOND_S = 1e-6
"""The unit of a FunctionEvent's times."""

BACKWARD_NODE = "autograd::engine::evaluate_function: "
"""How autograd announces that it runs one node of the graph, with what belongs to it."""

NUMBERED_REGION = "Torch-Compiled Region"
"""How Dynamo announces compiled code; a number follows that tells compilations of one process apart."""

Place = tuple[str, str]
"""A stage's name and direction."""


@dataclass(frozen=True)
class Call:
    """The label around a call, what the host did inside it, and the kernels and copies that a GPU ran for it.

    `places` holds the stage of every host event that has one.
    """

    whole: FunctionEvent
    host: tuple[FunctionEvent, ...]
    device: tuple[FunctionEvent, ...]
    places: Mapping[FunctionEvent, Place]


def recorded(profiler: profile, label: str) -> Call:
    """Return the call that stands under this label in a profile."""
    events = list(profiler.events() or [])
    (whole,) = (event for event in events if event.name == label and event.device_type == DeviceType.CPU)
    host = tuple(sorted((event for event in events if _is_inside(event, whole)), key=_start))
    launched = {kernel.name for event in host for kernel in event.kernels}
    device = tuple(event for event in events if _is_on_device(event) and event.name in launched)
    return Call(whole, host, device, _places(host, whole))


def name(event: FunctionEvent) -> str:
    """Return the name of what ran, without what tells compilations apart."""
    if graph := COMPILED_GRAPH.match(event.name):
        return graph[1]
    return NUMBERED_REGION if event.name.startswith(NUMBERED_REGION) else str(event.name)


def is_label(event: FunctionEvent) -> bool:
    """Return whether an event is a label that someone put around a part of the code: a stage."""
    return bool(event.is_user_annotation) and not COMPILED_GRAPH.match(event.name)


def is_backward_node(event: FunctionEvent) -> bool:
    """Return whether an event is a node of autograd's graph, outermost."""
    return str(event.name).startswith(BACKWARD_NODE)


def start_s(event: FunctionEvent, call: Call) -> float:
    """Return when an event began, counted from the beginning of its call."""
    return float(event.time_range.start - call.whole.time_range.start) * MICROSECOND_S


def duration_s(event: FunctionEvent) -> float:
    """Return how long an event took."""
    return float(event.time_range.elapsed_us()) * MICROSECOND_S


def _start(event: FunctionEvent) -> float:
    return float(event.time_range.start)


def _is_inside(event: FunctionEvent, whole: FunctionEvent) -> bool:
    if event is whole or event.device_type != DeviceType.CPU or event.name == MEMORY_EVENT_NAME:
        return False
    # by time and not by parent: on a GPU autograd has a thread of its own
    return bool(event.time_range.start >= whole.time_range.start and event.time_range.end <= whole.time_range.end)


def _is_on_device(event: FunctionEvent) -> bool:
    return event.device_type != DeviceType.CPU and not event.is_user_annotation


def _places(host: Sequence[FunctionEvent], whole: FunctionEvent) -> Mapping[FunctionEvent, Place]:
    """Return each event's stage: the outermost label around it, or that of the forward operator it belongs to.

    A node of autograd's graph has the sequence number of the operator that made it. Other operators before that one
    may show the same number, because they read the counter and made no node: the last to read it made the node.
    """
    outermost = {event: _outermost(event, whole) for event in host}
    forward = {event: (top.name, FORWARD) for event, top in outermost.items() if is_label(top)}
    made = {_node(event.thread, event): place for event, place in forward.items() if event.sequence_nr >= 0}
    backward = {
        event: (made[key][0], BACKWARD)
        for event, top in outermost.items()
        if is_backward_node(top) and (key := _node(top.fwd_thread, top)) in made
    }
    return {**forward, **backward}


def _outermost(event: FunctionEvent, whole: FunctionEvent) -> FunctionEvent:
    while event.cpu_parent is not None and event.cpu_parent is not whole:
        event = event.cpu_parent
    return event


def _node(thread: Any, event: FunctionEvent) -> tuple[Any, int]:
    return thread, event.sequence_nr
