"""One call as the profiler recorded it: its events on the host and on a GPU, with their stages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import MEMORY_EVENT_NAME, FunctionEvent
from torch.profiler import profile

from bench.measure.dispatch import COMPILED_GRAPH
from bench.store.profile import BACKWARD, FORWARD

MICROSECOND_S = 1e-6
"""The unit of a FunctionEvent's times."""

BACKWARD_NODE = "autograd::engine::evaluate_function: "
"""The prefix of the event in which autograd runs one node of the graph."""

NUMBERED_REGION = "Torch-Compiled Region"
"""The prefix of Dynamo's events for compiled code; a number follows that differs between compilations in a process."""

Place = tuple[str, str]
"""A stage's name and direction."""


@dataclass(frozen=True)
class Call:
    """The label around a call, the host's events inside it, and the kernels and copies that a GPU ran for it.

    `places` maps every host event that belongs to a stage to that stage.
    """

    whole: FunctionEvent
    host: tuple[FunctionEvent, ...]
    device: tuple[FunctionEvent, ...]
    places: Mapping[FunctionEvent, Place]


def recorded(profiler: profile, label: str) -> Call:
    """Return the call with this label from a profile."""
    events = list(profiler.events() or [])
    (whole,) = (event for event in events if event.name == label and event.device_type == DeviceType.CPU)
    host = tuple(sorted((event for event in events if _is_inside(event, whole)), key=lambda e: e.time_range.start))
    launched = {kernel.name for event in host for kernel in event.kernels}
    on_device = (event for event in events if event.device_type != DeviceType.CPU and not event.is_user_annotation)
    device = tuple(event for event in on_device if event.name in launched)
    return Call(whole, host, device, _places(host, whole))


def name(event: FunctionEvent) -> str:
    """Return an event's name without the number of the compilation."""
    if graph := COMPILED_GRAPH.match(event.name):
        return graph[1]
    return NUMBERED_REGION if event.name.startswith(NUMBERED_REGION) else str(event.name)


def is_label(event: FunctionEvent) -> bool:
    """Return whether an event is a label in the code, which names a stage."""
    return bool(event.is_user_annotation) and not COMPILED_GRAPH.match(event.name)


def start_s(event: FunctionEvent, call: Call) -> float:
    """Return the seconds from the beginning of a call to the beginning of an event."""
    return float(event.time_range.start - call.whole.time_range.start) * MICROSECOND_S


def duration_s(event: FunctionEvent) -> float:
    """Return the seconds that an event took."""
    return float(event.time_range.elapsed_us()) * MICROSECOND_S


def _is_inside(event: FunctionEvent, whole: FunctionEvent) -> bool:
    if event is whole or event.device_type != DeviceType.CPU or event.name == MEMORY_EVENT_NAME:
        return False
    # by time and not by parent: on a GPU autograd has its own thread
    return bool(event.time_range.start >= whole.time_range.start and event.time_range.end <= whole.time_range.end)


def _places(host: Sequence[FunctionEvent], whole: FunctionEvent) -> Mapping[FunctionEvent, Place]:
    """Return each event's stage: the outermost label around it, or in the backward pass that of its forward operator.

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
    while event.cpu_parent is not None and event.cpu_parent is not whole:
        event = event.cpu_parent
    return event
