"""Calls in a profile: the host's events with their labels, and a GPU's kernels."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import MEMORY_EVENT_NAME, FunctionEvent
from torch.profiler import profile

from bench.measure.inspection import COMPILED_GRAPH, MICROSECOND_S
from bench.plan.device import Kind

BACKWARD_NODE = "autograd::engine::evaluate_function: "
"""The prefix of the event in which autograd runs one node of the graph."""

NUMBERED_REGION = "Torch-Compiled Region"
"""The prefix of Dynamo's events for compiled code; a number follows that differs between compilations in a process."""

RUNTIME = re.compile(r"cu(da)?[A-Z]\w*$")
"""The names of functions of the CUDA runtime and driver, which launch work on a GPU or wait for it."""

OF_PROFILER = frozenset(
    (
        "Activity Buffer Request", "Buffer Flush", "Command Buffer Full", "Driver Compiler", "Instrumentation",
        "Lazy Function Loading", "Resource", "Runtime Triggered Module Loading", "UVM Activity Init",
    )
)  # fmt: skip
"""The profiler's events for overhead of CUDA and of itself. Source: CUPTI's kinds of overhead in Kineto."""


class Place(NamedTuple):
    """The label in the code to which an event belongs, and whether the event is in its backward pass."""

    label: str
    is_backward: bool


@dataclass(frozen=True)
class Call:
    """The label around a call, the host's events inside it, and the kernels and copies that a GPU ran for it.

    Launches are left out, because their time is part of the operator that launches. `places` has every host event that
    belongs to a label inside the call. `device` is in the order of the start on the GPU.
    """

    whole: FunctionEvent
    host: tuple[FunctionEvent, ...]
    device: tuple[FunctionEvent, ...]
    places: Mapping[FunctionEvent, Place]

    def whole_s(self, kind: Kind) -> float:
        """Return the seconds of the call; on a GPU, the sum over its kernels."""
        events = [self.whole] if kind.is_timed_by_host else self.device
        return float(sum(event.time_range.elapsed_us() for event in events)) * MICROSECOND_S

    def part_s(self, event: FunctionEvent, kind: Kind) -> float:
        """Return an event's part of its label's seconds: its own time if it is outermost; on a GPU, its kernels' time.

        A label counts 0 on a GPU, because the profiler adds the span of all its kernels to it.
        """
        if not kind.is_timed_by_host:
            return 0.0 if is_label(event) else sum(kernel.duration for kernel in event.kernels) * MICROSECOND_S
        return 0.0 if event.cpu_parent in self.places else float(event.cpu_time_total) * MICROSECOND_S


def recorded(profiler: profile, label: str) -> list[Call]:
    """Return the calls with this label from a profile."""
    events = list(profiler.events() or [])
    wholes = (event for event in events if event.name == label and event.device_type == DeviceType.CPU)
    return [_call(events, whole) for whole in wholes]


def _call(events: Sequence[FunctionEvent], whole: FunctionEvent) -> Call:
    inside = sorted((event for event in events if _is_inside(event, whole)), key=lambda e: e.time_range.start)
    host = tuple(event for event in inside if not _is_launch(event) and event.name not in OF_PROFILER)
    launches = {event.id for event in inside if _is_launch(event)}  # a launch and its kernel have the same id
    on_device = (event for event in events if event.device_type != DeviceType.CPU and not event.is_user_annotation)
    device = sorted((event for event in on_device if event.id in launches), key=lambda e: e.time_range.start)
    for event in host:
        event.cpu_children = [child for child in event.cpu_children if not _is_launch(child)]
    return Call(whole, host, tuple(device), _places(host, whole))


def name(of: str) -> str:
    """Return the name of an event without the number of its compilation."""
    if graph := COMPILED_GRAPH.match(of):
        return graph[1]
    return NUMBERED_REGION if of.startswith(NUMBERED_REGION) else of


def is_label(event: FunctionEvent) -> bool:
    """Return whether an event is a label in the code."""
    return bool(event.is_user_annotation) and not COMPILED_GRAPH.match(event.name)


def _is_launch(event: FunctionEvent) -> bool:
    """Return whether an event is a call of the CUDA runtime or driver: a launch or a wait."""
    return bool(RUNTIME.match(event.name))


def _is_inside(event: FunctionEvent, whole: FunctionEvent) -> bool:
    if event is whole or event.device_type != DeviceType.CPU or event.name == MEMORY_EVENT_NAME:
        return False
    # by time, not by parent, because autograd has its own thread on a GPU
    return bool(event.time_range.start >= whole.time_range.start and event.time_range.end <= whole.time_range.end)


def _places(host: Sequence[FunctionEvent], whole: FunctionEvent) -> Mapping[FunctionEvent, Place]:
    """Return the outermost label around each event; in the backward pass, the label around its forward operator.

    A node of autograd's graph has the sequence number of the operator that made it. Earlier operators that made no node
    may have the same number, so the last one counts.
    """
    outermost = {event: _outermost(event, whole) for event in host}
    forward = {event: Place(top.name, False) for event, top in outermost.items() if is_label(top)}
    of_node = {(event.thread, event.sequence_nr): place for event, place in forward.items() if event.sequence_nr >= 0}
    backward = {
        event: Place(of_node[node].label, True)
        for event, top in outermost.items()
        if str(top.name).startswith(BACKWARD_NODE) and (node := (top.fwd_thread, top.sequence_nr)) in of_node
    }
    return {**forward, **backward}


def _outermost(event: FunctionEvent, whole: FunctionEvent) -> FunctionEvent:
    *_, outermost = takewhile(lambda each: each is not whole, around(event))
    return outermost


def around(event: FunctionEvent | None) -> Iterator[FunctionEvent]:
    """Yield an event and its parents, the innermost first."""
    while event is not None:
        yield event
        event = event.cpu_parent
