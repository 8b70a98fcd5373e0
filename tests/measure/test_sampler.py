"""Warm-up and samples, on calls that take no time and with given readings of the clock."""

import mmap
from collections.abc import Callable

from bench.measure import sampler
from bench.measure.sampler import Pace


def scripted(values: list[float]) -> Callable[[Callable[[], object], int], float]:
    """Return a timer that reads the values one after the other, then the last one for ever."""
    left = list(values)

    def timer(_call: Callable[[], object], _calls: int) -> float:
        return left.pop(0) if len(left) > 1 else left[0]

    return timer


class TestWarmUp:
    """When warm-up ends, and the pace it leaves."""

    def test_it_settles_when_two_windows_agree(self) -> None:
        """A constant call settles."""
        assert sampler.warm_up(lambda: None, scripted([2e-3]), 1e-7).settled

    def test_it_goes_on_while_calls_get_faster(self) -> None:
        """A call that halves its time again and again has not settled when the calls are used up."""
        slow = [1e9 * 0.9**n for n in range(400)]
        assert not sampler.warm_up(lambda: None, scripted(slow), 1e-7).settled

    def test_a_time_limit_still_leaves_two_windows(self) -> None:
        """With no time at all a call of 10 ms is timed as often as two windows need, and no oftener."""
        timings = iter([0.010, 0.011, 0.012, 0.013, 0.014, 0.015])
        pace = sampler.warm_up(lambda: None, lambda *_: next(timings), 1e-7, most_s=0.0)
        assert not pace.settled
        assert next(timings, None) is None

    def test_a_long_call_that_was_seen_before_needs_one_more(self) -> None:
        """A call of 60 ms that took as long in its check has settled with its first timing, a slower one hasn't."""
        timings = iter([0.06])
        assert sampler.warm_up(lambda: None, lambda *_: next(timings), 1e-7, previous_s=0.06).settled
        timings = iter([0.06, 0.06])
        assert sampler.warm_up(lambda: None, lambda *_: next(timings), 1e-7, previous_s=0.09).settled
        assert next(timings, None) is None

    def test_a_timing_lasts_a_millisecond(self) -> None:
        """A call of 30 µs is timed at least 34 at a time."""
        pace = sampler.warm_up(lambda: None, scripted([30e-6]), 1e-7)
        assert pace == Pace(calls=34, call_s=30e-6, settled=True)

    def test_a_slow_clock_asks_for_longer_timings(self) -> None:
        """With a clock that costs 10 µs a timing lasts 10 ms."""
        assert sampler.warm_up(lambda: None, scripted([1e-3]), 1e-5).calls == 10

    def test_a_cold_first_call_does_not_set_the_pace(self) -> None:
        """A first call of a second, then 10 µs each: the pace is that of the warm call."""
        assert sampler.warm_up(lambda: None, scripted([1.0, *[1e-5] * 400]), 1e-7).calls == 100


def test_a_sample_counts_its_timings_and_its_page_faults() -> None:
    """A call that touches fresh pages shows as minor page faults of the sample."""
    from bench.measure import clock

    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        with mmap.mmap(-1, 1 << 22) as fresh:
            fresh.write(bytes(1 << 22))

    taken = sampler.sample(call, clock.timer("cpu", "host"), calls=2, timings=3)
    assert calls == 6
    assert len(taken.timings_s) == 3
    assert taken.faults >= 6 * (1 << 22) // 4096 * 0.9
