"""The clock: timings on a CPU, and the warm-up."""

import math
import time

import pytest

from bench.measure import clock
from bench.measure.clock import Pace, Timing


def test_a_timing_is_seconds_per_call() -> None:
    """A timing of five calls that each wait 2 ms says at least 2 ms, and counts all five."""
    count = 0

    def call() -> None:
        nonlocal count
        count += 1
        end = time.perf_counter() + 2e-3
        while time.perf_counter() < end:
            pass

    assert clock.host(call, 5).call_s >= 2e-3
    assert count == 5


@pytest.mark.parametrize(
    ("values_s", "calls", "settled"),
    [
        pytest.param([2e-3], 1, True, id="constant"),
        pytest.param([1e15 * 0.9**n for n in range(400)], 1, False, id="faster and faster"),
        pytest.param([30e-6], 34, True, id="a timing lasts a millisecond"),
        pytest.param([1.0, *[1e-5] * 400], 100, True, id="a cold first call"),
    ],
)
def test_a_warm_up_ends_when_two_windows_agree(values_s: list[float], calls: int, settled: bool) -> None:
    """The warm-up leaves the pace of the warm call."""
    times_s = iter(values_s)
    pace = clock.warm_up(lambda: None, lambda *_: Timing(next(times_s, values_s[-1])))
    assert (pace.calls, pace.settled) == (calls, settled)
    assert not settled or pace == Pace(calls, values_s[-1], True)


@pytest.mark.parametrize(("earlier_s", "needed"), [(0.1, 1), (5.0, 2), (math.inf, 2)])
@pytest.mark.parametrize("most_s", [0.0, 5.0])
def test_a_long_call_before_the_warm_up_counts(earlier_s: float, needed: int, most_s: float) -> None:
    """Then one more call is enough; after a slow or unknown one two are needed, even if the time is over."""
    taken = [Timing(0.1)] * needed
    assert clock.warm_up(lambda: None, lambda *_: taken.pop(), most_s, earlier_s=earlier_s).settled
    assert not taken
