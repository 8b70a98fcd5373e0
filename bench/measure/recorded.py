"""Calls as the profiler recorded them: the host's events with their labels, and the kernels of a GPU."""

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
"""The names of the CUDA runtime's and driver's functions, by which the host gives work to a GPU and waits for it."""

OF_PROFILER = frozenset(
    (
        "Activity Buffer Request", "Buffer Flush", "Command Buffer Full", "Driver Compiler", "Instrumentation",
        "Lazy Function Loading", "Resource", "Runtime Triggered Module Loading", "UVM Activity Init",
    )
)  # fmt: skip
"""The profiler's events for what CUDA and it itself do beside the call. Source: CUPTI's kinds of overhead in Kineto."""


class Place(NamedTuple):
    """The label in the code that an event belongs to, and whether it is in the backward pass of what ran there."""

    label: str
    is_backward: bool


@dataclass(frozen=True)
class Call:
    """The label around a call, the host's events inside it, and the kernels and copies that a GPU ran for it.

    A launch is none of these events: its time is that of the operator which launched. `places` has the place of every
    host event that belongs to a label inside. `device` is in the order in which the GPU began.
    """

    whole: FunctionEvent
    host: tuple[FunctionEvent, ...]
    device: tuple[FunctionEvent, ...]
    places: Mapping[FunctionEvent, Place]

    def whole_s(self, kind: Kind) -> float:
        """Return the seconds of the call, on a GPU those of its kernels."""
        events = [self.whole] if kind.is_timed_by_host else self.device
        return float(sum(event.time_range.elapsed_us() for event in events)) * MICROSECOND_S

    def part_s(self, event: FunctionEvent, kind: Kind) -> float:
        """Return an event's part of its label's seconds: that of the outermost ones, or of the kernels it launched.

        The profiler adds to the kernels of a label the span of them all, which counts nothing.
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
    launches = {event.id for event in inside if _is_launch(event)}  # CUDA gives a launch and its kernel the same number
    on_device = (event for event in events if event.device_type != DeviceType.CPU and not event.is_user_annotation)
    device = sorted((event for event in on_device if event.id in launches), key=lambda e: e.time_range.start)
    for event in host:
        event.cpu_children = [child for child in event.cpu_children if not _is_launch(child)]
    return Call(whole, host, tuple(device), _places(host, whole))


def name(of: str) -> str:
    """Return the name of an event without the number of the compilation."""
    if graph := COMPILED_GRAPH.match(of):
        return graph[1]
    return NUMBERED_REGION if of.startswith(NUMBERED_REGION) else of


def is_label(event: FunctionEvent) -> bool:
    """Return whether an event is a label in the code."""
    return bool(event.is_user_annotation) and not COMPILED_GRAPH.match(event.name)


def _is_launch(event: FunctionEvent) -> bool:
    """Return whether the host called the CUDA runtime or driver: to launch a kernel or a copy, or to wait."""
    return bool(RUNTIME.match(event.name))


def _is_inside(event: FunctionEvent, whole: FunctionEvent) -> bool:
    if event is whole or event.device_type != DeviceType.CPU or event.name == MEMORY_EVENT_NAME:
        return False
    # by time and not by parent: on a GPU autograd has its own thread
    return bool(event.time_range.start >= whole.time_range.start and event.time_range.end <= whole.time_range.end)


def _places(host: Sequence[FunctionEvent], whole: FunctionEvent) -> Mapping[FunctionEvent, Place]:
    """Return the outermost label around each event, or in the backward pass that of its forward operator.

    A node of autograd's graph has the sequence number of the operator that made it. Earlier operators may have the same
    number, because they read the counter and make no node: the last one with a number made the node.
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
    """Yield an event and those around it, from the inside."""
    while event is not None:
        yield event
        event = event.cpu_parent
