"""Repair of torch's Chrome traces, so that viewers can read them."""

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

TraceEvent = dict[str, Any]
Lane = tuple[Any, Any]

ARROW_START, ARROW_END = "s", "f"
"""The phases of an arrow's two ends."""

SLICE = "X"
"""The phase of an event with a beginning and a duration."""


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
    starts = {lane: sorted(start for start, _ in slices) for lane, slices in lanes.items()}
    ends = {lane: list(accumulate((end for _, end in sorted(slices)), max)) for lane, slices in lanes.items()}

    def covers(event: TraceEvent) -> bool:
        lane = _lane(event)
        earlier = bisect_right(starts.get(lane, []), event["ts"])
        return earlier > 0 and bool(ends[lane][earlier - 1] >= event["ts"])

    return covers


def _lane(event: TraceEvent) -> Lane:
    return event["pid"], event["tid"]
