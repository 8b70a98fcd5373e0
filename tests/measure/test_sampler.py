"""Warm-up and rounds, on calls that take no time: the clock is told what to say."""

import mmap
import random
from collections import Counter
from collections.abc import Callable

from bench.measure import sampler
from bench.measure.neighbours import Neighbours
from bench.measure.sampler import Limits, Pace, Reading


def scripted(values: list[float]) -> Callable[[Callable[[], object], int], float]:
    """Return a timer that reads the values one after the other, then the last one for ever."""
    left = list(values)

    def timer(_call: Callable[[], object], _calls: int) -> float:
        return left.pop(0) if len(left) > 1 else left[0]

    return timer


def reading(value_s: float) -> Reading:
    """Return a slot of one timing."""
    return Reading((value_s,), 0, 0)


def never(_name: str, error: Exception) -> None:
    """Fail the test when an implementation does."""
    raise error


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
        """A call of 60 ms that took as long in the gate has settled with its first timing, a slower one hasn't."""
        timings = iter([0.06])
        assert sampler.warm_up(lambda: None, lambda *_: next(timings), 1e-7, seen_s=0.06).settled
        timings = iter([0.06, 0.06])
        assert sampler.warm_up(lambda: None, lambda *_: next(timings), 1e-7, seen_s=0.09).settled
        assert next(timings, None) is None

    def test_a_timing_lasts_a_millisecond(self) -> None:
        """A call of 30 µs is timed at least 34 at a time, three times a slot."""
        pace = sampler.warm_up(lambda: None, scripted([30e-6]), 1e-7)
        assert pace == Pace(calls=34, timings=3, settled=True)

    def test_a_slow_clock_asks_for_longer_timings(self) -> None:
        """With a clock that costs 10 µs a timing lasts 10 ms."""
        assert sampler.warm_up(lambda: None, scripted([1e-3]), 1e-5).calls == 10

    def test_a_long_call_is_its_own_slot(self) -> None:
        """Above 50 ms a slot is one timing of one call."""
        assert sampler.warm_up(lambda: None, scripted([0.06]), 1e-7) == Pace(calls=1, timings=1, settled=True)

    def test_a_cold_first_call_does_not_set_the_pace(self) -> None:
        """A first call of a second, then 10 µs each: the pace is that of the warm call."""
        assert sampler.warm_up(lambda: None, scripted([1.0, *[1e-5] * 400]), 1e-7).calls == 100


class TestRounds:
    """Who is measured in which round, and when it ends."""

    def test_every_round_times_every_implementation_once_in_a_random_order(self) -> None:
        """Over twenty rounds of three and more, each comes once a round, and each comes first at times."""
        order: list[str] = []
        noise = random.Random(1)

        def turn(name: str) -> Callable[[], Reading]:
            def take() -> Reading:
                order.append(name)
                return reading(1 + noise.random())

            return take

        turns = {name: turn(name) for name in "abc"}
        limits = Limits(target=1e-9, budget_s=0.3, processes=3)
        taken = sampler.sample(turns, "a", limits, random.Random(2), never)
        rounds = [order[start : start + 3] for start in range(0, len(order), 3)]
        assert len(rounds) >= 20
        assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
        assert set(Counter(names[0] for names in rounds)) == {"a", "b", "c"}
        assert len(taken["a"].rounds) == len(rounds)

    def test_who_reached_the_target_leaves_and_the_baseline_stays(self) -> None:
        """A quiet implementation is done after the least rounds, while a noisy one and the baseline go on."""
        noise = random.Random(1)
        turns = {
            "base": lambda: reading(1.0),
            "quiet": lambda: reading(0.5),
            "noisy": lambda: reading(1 + noise.random()),
        }
        limits = Limits(target=0.01, budget_s=0.05, processes=3)
        taken = sampler.sample(turns, "base", limits, random.Random(2), never)
        assert len(taken["quiet"].rounds) == sampler.SURE_ROUNDS
        assert len(taken["noisy"].rounds) == len(taken["base"].rounds) > sampler.SURE_ROUNDS

    def test_the_least_rounds_are_taken_even_without_a_budget(self) -> None:
        """With no time at all there are still enough rounds for a median."""
        noise = random.Random(1)
        turns = {name: lambda: reading(1 + noise.random()) for name in "ab"}
        taken = sampler.sample(turns, "a", Limits(1e-9, 0.0, 3), random.Random(2), never)
        assert taken["b"].rounds == tuple(range(sampler.LEAST_ROUNDS))

    def test_one_that_raises_leaves_the_rounds_and_the_others_go_on(self) -> None:
        """A failure is told, its slots are dropped, and nobody else's are."""
        told: list[tuple[str, str]] = []

        def fail() -> Reading:
            raise RuntimeError("no")

        turns: dict[str, Callable[[], Reading]] = {"base": lambda: reading(1.0), "bad": fail}
        taken = sampler.sample(
            turns, "base", Limits(0.01, 1.0, 3), random.Random(2), lambda name, error: told.append((name, str(error)))
        )
        assert told == [("bad", "no")]
        assert set(taken) == {"base"}
        assert len(taken["base"].rounds) >= sampler.LEAST_ROUNDS

    def test_without_a_baseline_the_budget_decides(self) -> None:
        """When the baseline is not there, there is no ratio to know, and rounds go on for the budget."""
        turns = {"only": lambda: reading(1.0)}
        taken = sampler.sample(turns, "base", Limits(0.01, 0.02, 3), random.Random(2), never)
        assert len(taken["only"].rounds) > sampler.LEAST_ROUNDS


def test_a_slot_counts_its_timings_and_its_page_faults() -> None:
    """A call that touches fresh pages shows as minor page faults of the slot."""
    from bench.measure import clock

    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        with mmap.mmap(-1, 1 << 22) as fresh:
            fresh.write(bytes(1 << 22))

    taken = sampler.slot(
        call, clock.timer("cpu", "host"), Pace(calls=2, timings=3, settled=True), Neighbours(threads=1)
    )
    assert calls == 6
    assert len(taken.timings_s) == 3
    assert taken.faults >= 6 * (1 << 22) // 4096 * 0.9
