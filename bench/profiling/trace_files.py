"""Traces of calls for Perfetto and TensorBoard, in which what viewers can't read is repaired.

TensorBoard's plugin is torch-tb-profiler 0.4.3, which reads an older format than torch writes.
"""

import gzip
import json
import shutil
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any

from torch._C._profiler import _ExperimentalConfig
from torch.profiler import profile, record_function, tensorboard_trace_handler

from bench.measure import clock
from bench.measure.devices import device
from bench.plan.case import Case
from bench.store.profile import TRACES, file_name

TraceEvent = dict[str, Any]
Lane = tuple[Any, Any]

ARROW_START, ARROW_END = "s", "f"
"""The phases of an arrow's two ends."""

_lane = itemgetter("pid", "tid")

SLICE = "X"
"""The phase of an event with a beginning and a duration."""

FOLDER = "tensorboard"
"""The folder for TensorBoard in a run's traces; each case in it is a run for TensorBoard."""

CALLS = 3
"""Calls in a trace: the plugin's steps."""

SETTINGS: dict[str, Any] = {
    "record_shapes": True,  # operators by the shapes of their inputs
    "profile_memory": True,  # the memory view
    "with_stack": True,  # the module view
    "experimental_config": _ExperimentalConfig(verbose=True),  # stacks beside operators
}
"""The profiler's settings that the plugin's views need."""

CATEGORIES = {
    "user_annotation": "cpu_op",  # stages: the plugin drops labels, and shows operators
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",  # Triton's kernels are launched by the driver
}
"""The plugin's own category for each category that it doesn't know."""


def read(path: Path) -> dict[str, Any]:
    """Return a trace that torch wrote, with exact decimal numbers.

    torch writes NaN, which is not JSON, and with stacks also names of freed functions that are neither UTF-8 nor JSON.
    """
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", errors="replace")
    trace: dict[str, Any] = json.loads(text, strict=False, parse_float=Decimal, parse_constant=lambda _: None)
    return trace


def write(trace: dict[str, Any], path: Path) -> None:
    """Write a trace as gzipped JSON; the name of the file becomes its `traceName`."""
    with gzip.open(path, "wt", encoding="utf-8") as file:
        # the events come last: TensorBoard's plugin cuts a GPU's trace at its last bracket to add events
        rest = {key: value for key, value in trace.items() if key != "traceEvents"}
        whole = {**rest, "traceName": path.name, "traceEvents": trace["traceEvents"]}
        json.dump(whole, file, allow_nan=False, default=float)


def repaired(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace that viewers can read completely; decimal numbers stay exact.

    Times count from the trace's first event: counted from the machine's start they have more digits than a float, and a
    slice could seem to end after the slice around it. A slice with a negative duration lasts until the trace ends. An
    arrow is left out if one end is missing or is outside all slices.
    """
    events: list[TraceEvent] = trace["traceEvents"]
    first = min((event["ts"] for event in events if "ts" in event), default=0)
    last = max((event["ts"] + max(0, event.get("dur", 0)) for event in events if "ts" in event), default=0)
    whole = [_repaired(event, first, last) for event in events]
    base = {"baseTimeNanoseconds": trace.get("baseTimeNanoseconds", 0) + round(first * 1000)}
    return {**trace, **base, "traceEvents": _without_loose_arrows(whole)}


def _repaired(event: TraceEvent, first: Any, last: Any) -> TraceEvent:
    if "ts" not in event:
        return event
    end = {"dur": last - event["ts"]} if event.get("dur", 0) < 0 else {}
    return {**event, **end, "ts": event["ts"] - first}


def _without_loose_arrows(events: Sequence[TraceEvent]) -> list[TraceEvent]:
    covers = _covering(events)
    ends: dict[Any, set[str]] = defaultdict(set)
    for event in events:
        if event["ph"] in (ARROW_START, ARROW_END) and covers(event):
            ends[_arrow(event)].add(event["ph"])
    whole = {arrow for arrow, phases in ends.items() if len(phases) == 2}
    return [event for event in events if event["ph"] not in (ARROW_START, ARROW_END) or _arrow(event) in whole]


def _arrow(event: TraceEvent) -> tuple[Any, ...]:
    return event.get("cat"), event["name"], event["id"]


def _covering(events: Sequence[TraceEvent]) -> Callable[[TraceEvent], bool]:
    """Return a function that tells whether an event is inside a slice of its lane."""
    lanes: dict[Lane, list[tuple[Any, Any]]] = defaultdict(list)
    for event in events:
        if event["ph"] == SLICE:
            lanes[_lane(event)].append((event["ts"], event["ts"] + event["dur"]))
    for slices in lanes.values():
        slices.sort()
    ends = {lane: list(accumulate((end for _, end in slices), max)) for lane, slices in lanes.items()}

    def covers(event: TraceEvent) -> bool:
        lane = _lane(event)
        earlier = bisect_right(lanes.get(lane, ()), event["ts"], key=itemgetter(0))
        return earlier > 0 and bool(ends[lane][earlier - 1] >= event["ts"])

    return covers


def record(call: Callable[[], object], run: Path, case: Case) -> Path:
    """Profile CALLS warm calls of a case with the plugin's settings, and return the file of their trace.

    An earlier trace of the case is replaced.
    """
    with record_function(label(case)):
        call()  # the first label of a process imports modules, which would be in the trace
    clock.prepare(call, CALLS)
    on = device(case.point.device)
    with profile(activities=on.activities, **SETTINGS) as profiler:
        for _ in range(CALLS):
            with record_function(label(case)):
                call()
        on.synchronize()
    folder = run / TRACES / FOLDER / file_name(case)
    shutil.rmtree(folder, ignore_errors=True)
    worker = case.implementation.replace(":", ".")  # the plugin cuts the run's long name, but shows this one whole
    tensorboard_trace_handler(str(folder), worker, use_gzip=True)(profiler)
    (path,) = folder.iterdir()
    write(for_plugin(repaired(read(path)), label(case)), path)
    return path


def for_plugin(trace: dict[str, Any], call: str) -> dict[str, Any]:
    """Return a trace in the plugin's format: labels become operators, and those named `call` become numbered steps."""
    events = trace["traceEvents"]
    starts = sorted(event["ts"] for event in events if _is_call(event, call))
    steps = {start: f"ProfilerStep#{number}" for number, start in enumerate(starts)}
    return {**trace, "traceEvents": [_event(event, call, steps) for event in events]}


def _event(event: dict[str, Any], call: str, steps: dict[float, str]) -> dict[str, Any]:
    if _is_call(event, call):
        return {**event, "name": steps[event["ts"]]}
    category = CATEGORIES.get(event.get("cat", ""))
    return {**event, "cat": category} if category else event


def _is_call(event: dict[str, Any], call: str) -> bool:
    return event.get("cat") == "user_annotation" and event["name"] == call


def label(case: Case) -> str:
    """Return the label of one call of a case."""
    return f"{case.implementation} call"
