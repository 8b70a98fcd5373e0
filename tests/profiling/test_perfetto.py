"""Traces that hold together."""

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from bench.profiling import perfetto
from bench.profiling.perfetto import repaired
from tests.points import point
from tests.profiling.taken import captured

pytestmark = pytest.mark.slow

Event = dict[str, Any]


@pytest.fixture(scope="module", params=["stepwise", "sdpa"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the trace of a training step, as it lies on disk; NaN and the like would be refused."""
    path = tmp_path_factory.mktemp("trace") / "trace.json.gz"
    raw = captured(point(mode="train"), request.param).median.trace
    perfetto.write(perfetto.repaired(perfetto.read(raw)), path)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    read: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()), parse_constant=refuse)
    return read


def slices(trace: dict[str, Any]) -> dict[tuple[Any, Any], list[tuple[float, float]]]:
    """Return beginning and end of the complete events of each lane, in nanoseconds, outermost first."""
    lanes: dict[tuple[Any, Any], list[tuple[float, float]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            start, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            lanes[event["pid"], event["tid"]].append((start, end))
    return {lane: sorted(found, key=lambda each: (each[0], -each[1])) for lane, found in lanes.items()}


def test_events_come_last(tmp_path: Path) -> None:
    """A plugin of TensorBoard's cuts a trace at its last bracket."""
    path = tmp_path / "trace.json.gz"
    perfetto.write({"traceEvents": [], "traceName": "another [1].json"}, path)
    assert gzip.decompress(path.read_bytes()).endswith(b'"traceName": "trace.json.gz", "traceEvents": []}')


def test_no_event_of_a_real_trace_is_negative(trace: dict[str, Any]) -> None:
    """Every event has a phase, every slice a time and a duration of at least 0."""
    events = trace["traceEvents"]
    assert len([event for event in events if event["ph"] == "X"]) > 50
    assert all(event["ts"] >= 0 for event in events if "ts" in event)
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def test_slices_of_a_real_trace_nest(trace: dict[str, Any]) -> None:
    """On one lane two slices lie inside each other or apart, and every beginning has its end."""
    for found in slices(trace).values():
        open_ends: list[float] = []
        for start, end in found:
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)
    depth: dict[tuple[Any, Any], int] = defaultdict(int)
    for event in sorted((e for e in trace["traceEvents"] if e["ph"] in "BE"), key=lambda event: event["ts"]):
        depth[event["pid"], event["tid"]] += 1 if event["ph"] == "B" else -1
        assert depth[event["pid"], event["tid"]] >= 0
    assert not any(depth.values())


def test_arrows_of_a_real_trace_are_whole(trace: dict[str, Any]) -> None:
    """Each has one start and one end, not before it, and both lie in slices of their lane."""
    arrows: dict[tuple[Any, Any], list[Event]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] in ("s", "t", "f"):
            arrows[event["cat"], event["id"]].append(event)
    assert arrows
    lanes = slices(trace)
    for ends in arrows.values():
        start, end = sorted(ends, key=lambda event: event["ts"])
        assert (start["ph"], end["ph"]) == ("s", "f")
        for event in ends:
            at = round(event["ts"] * 1000)
            assert any(first <= at <= last for first, last in lanes[event["pid"], event["tid"]])


def test_call_stacks_of_a_real_trace_are_whole(trace: dict[str, Any]) -> None:
    """Every frame that is named, by an event or as another's parent, is there."""
    frames = trace.get("stackFrames", {})
    named = [event[key] for event in trace["traceEvents"] for key in ("sf", "esf") if key in event]
    named += [frame["parent"] for frame in frames.values() if "parent" in frame]
    assert {str(name) for name in named} <= {str(name) for name in frames}
    python = {event["args"]["Python id"] for event in trace["traceEvents"] if "Python id" in event.get("args", {})}
    parents = [event["args"].get("Python parent id") for event in trace["traceEvents"] if "args" in event]
    assert {parent for parent in parents if parent is not None} <= python


def event(ph: str, ts: float, **more: Any) -> Event:
    """Return an event of the one lane of a planted trace."""
    return {"ph": ph, "ts": ts, "pid": 1, "tid": 1, "name": "x", **more}


def test_a_slice_that_never_ended_lasts_to_the_end() -> None:
    """A negative duration is how torch writes it; nothing else is changed but the origin of time."""
    before = [event("X", 100, dur=50), event("X", 110, dur=-109), event("i", 120, s="t")]
    after = repaired({"traceEvents": before, "baseTimeNanoseconds": 7})
    assert [(each["ts"], each.get("dur")) for each in after["traceEvents"]] == [(0, 50), (10, 40), (20, None)]
    assert after["baseTimeNanoseconds"] == 7 + 100_000


def test_loose_arrows_are_left_out() -> None:
    """One without an end, and one that ends where no slice is, go; a whole one stays, whatever its category."""
    before = [
        event("X", 0, dur=10),
        *(event(ph, 5, id=1, cat="ac2g") for ph in "sf"),
        *(event("s", 5, id=number, cat="fwdbwd") for number in (1, 2)),
        event("f", 11, id=2, cat="fwdbwd"),
    ]
    after = repaired({"traceEvents": before})["traceEvents"]
    assert [(each["ph"], each.get("cat")) for each in after] == [("X", None), ("s", "ac2g"), ("f", "ac2g")]


def test_a_trace_with_the_name_of_a_freed_function_can_be_read(tmp_path: Path) -> None:
    """Stacks may hold bytes that are neither UTF-8 nor allowed in JSON; they cost one name, not the trace."""
    path = tmp_path / "broken.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [{"name": "a.py(0): \xf1\x03led"}]}'))
    assert perfetto.read(path)["traceEvents"][0]["name"].startswith("a.py(0)")
