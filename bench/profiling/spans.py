"""The spans of time in one call, for the timeline: each with its lane and its depth."""

import re
from collections.abc import Mapping, Set

from torch.autograd.profiler_util import FunctionEvent

from bench.measure.dispatch import METADATA
from bench.profiling.recorded import Call, duration_s, is_label, name, start_s
from bench.store.profile import KERNEL, OPERATOR, STAGE, Span

HOST = "host"
"""The lane of the thread that made the call."""

INDUCTOR_KERNEL = re.compile(r"(graph_\d+_)?(cpp|triton)_")
"""The beginning of the names that Inductor gives its kernels."""

WORTH_SHOWING = 1e-3
"""An operator in METADATA, such as a view, is left out if it took less than this share of the call."""


def spans(call: Call) -> tuple[Span, ...]:
    """Return the spans of the call, the host's before the GPU's, in the order in which they begin; parents first."""
    shortest_s = WORTH_SHOWING * duration_s(call.whole)
    events = [event for event in call.host if event.name not in METADATA or duration_s(event) >= shortest_s]
    lanes, shown = _lanes(call), set(events)
    on_host = [_span(event, call, _kind(event), lanes[event.thread], _depth(event, shown)) for event in events]
    on_device = sorted(call.device, key=lambda event: event.time_range.start)
    return (*on_host, *(_span(event, call, KERNEL, f"stream {event.device_resource_id}", 0) for event in on_device))


def _span(event: FunctionEvent, call: Call, kind: str, lane: str, depth: int) -> Span:
    return Span(name(event), kind, lane, depth, start_s(event, call), duration_s(event))


def _kind(event: FunctionEvent) -> str:
    if is_label(event):
        return STAGE
    return KERNEL if INDUCTOR_KERNEL.match(event.name) else OPERATOR


def _depth(event: FunctionEvent, shown: Set[FunctionEvent]) -> int:
    depth = 0
    while event.cpu_parent is not None:
        event = event.cpu_parent
        depth += event in shown
    return depth


def _lanes(call: Call) -> Mapping[int, str]:
    """Return a name for each thread of the host; with a GPU autograd has its own thread."""
    threads = list(dict.fromkeys([call.whole.thread, *(event.thread for event in call.host)]))
    return {thread: HOST if number == 0 else f"{HOST} thread {number + 1}" for number, thread in enumerate(threads)}
