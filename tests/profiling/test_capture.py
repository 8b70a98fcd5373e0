"""Calls in turns."""

import json
from pathlib import Path

import pytest
from torch.autograd.profiler_util import FunctionEvent

from bench.profiling import capture
from bench.profiling.capture import Capture, Pair
from bench.profiling.recorded import Call

EMPTY = Call(FunctionEvent(1, "call", 1, 0, 1), (), (), {})


def made(*profiled_s: float) -> Capture:
    """Return a capture whose calls took so long under the profiler, and half of it without."""
    return Capture(tuple(Pair(each / 2, each, EMPTY, (), Path("trace")) for each in profiled_s))


def test_a_delayed_call_is_passed_over() -> None:
    """One in five changes neither latency, and what remains is the mean of the middle."""
    taken = made(1, 2, 3, 4.5, 90)
    assert taken.profiled_s == pytest.approx(9.5 / 3)
    assert taken.timed_s == pytest.approx(9.5 / 6)


@pytest.mark.parametrize(
    ("profiled_s", "middle"),
    [((3, 1, 2), [2]), ((5, 4, 3, 2, 1), [2, 3, 4]), ((90, 2, 1, 3), [2, 3]), ((8, 7, 6, 5, 4, 3, 2, 1), [3, 4, 5, 6])],
)
def test_the_middle_half_leaves_out_the_fastest_and_the_slowest(
    profiled_s: tuple[float, ...], middle: list[float]
) -> None:
    """As many are left out above as below, and the call that is kept is one of the middle."""
    taken = made(*profiled_s)
    assert [pair.profiled_s for pair in taken.middle] == middle
    assert taken.kept in taken.middle


def test_however_long_a_call_takes_there_are_three_pairs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each has a trace of its own, which holds one call under its label."""
    monkeypatch.setattr(capture, "BUDGET_S", 0.0)
    taken = capture.take(lambda: None, "the call", "cpu", "host", tmp_path)
    assert len({pair.trace for pair in taken.pairs}) == len(taken.pairs) == capture.LEAST_PAIRS
    for pair in taken.pairs:
        names = [event.get("name") for event in json.loads(pair.trace.read_text())["traceEvents"]]
        assert names.count("the call") == 1
