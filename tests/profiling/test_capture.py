"""Calls in turns."""

import pytest
from torch.profiler import profile

from bench.profiling import capture
from bench.profiling.capture import Capture, Pair


def made(*profiled_s: float) -> Capture:
    """Return a capture whose calls took so long under the profiler, and half of it without."""
    return Capture("call", tuple(Pair(each / 2, each, profile()) for each in profiled_s))


def test_medians_stand_for_the_calls() -> None:
    """One delayed call in five changes neither latency."""
    assert (made(1, 2, 3, 4, 90).timed_s, made(1, 2, 3, 4, 90).profiled_s) == (1.5, 3)


@pytest.mark.parametrize(
    ("profiled_s", "middle"),
    [((3, 1, 2), [2]), ((5, 4, 3, 2, 1), [2, 3, 4]), ((90, 2, 1, 3), [2, 3]), ((8, 7, 6, 5, 4, 3, 2, 1), [3, 4, 5, 6])],
)
def test_the_middle_half_leaves_out_the_fastest_and_the_slowest(profiled_s: tuple[float, ...], middle: list[float]) -> None:
    """As many are left out above as below, and the call that is kept is one of the middle."""
    taken = made(*profiled_s)
    assert [pair.profiled_s for pair in taken.middle] == middle
    assert taken.kept in taken.middle


def test_calls_alternate_and_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a call takes there are three pairs, and each profile holds one call under its label."""
    monkeypatch.setattr(capture, "BUDGET_S", 0.0)
    made_calls = 0

    def call() -> int:
        nonlocal made_calls
        made_calls += 1
        return made_calls

    taken = capture.take(call, "the call", "cpu", "host")
    assert len(taken.pairs) == capture.LEAST_PAIRS
    labels = [[event.name for event in pair.profiler.events() or []].count("the call") for pair in taken.pairs]
    assert labels == [1, 1, 1]
