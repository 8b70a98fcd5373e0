"""Rounds: who takes a turn in which, and when they end."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from bench.sampling.rounds import LEAST_ROUNDS, Length, sample, timings

SAMPLE = "a sample"


def never(_name: str, error: Exception) -> None:
    """Fail the test when an implementation does."""
    raise error


def test_every_round_times_every_implementation_once_in_a_random_order() -> None:
    """Over twenty rounds of three and more, each comes once a round, and each comes first at times."""
    order: list[str] = []

    def turn(name: str) -> Callable[[], str]:
        def take() -> str:
            order.append(name)
            return SAMPLE

        return take

    taken = sample({name: turn(name) for name in "abc"}, Length(0.05, 20), random.Random(2), never)
    rounds = [order[start : start + 3] for start in range(0, len(order), 3)]
    assert len(rounds) > 20
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert set(Counter(names[0] for names in rounds)) == {"a", "b", "c"}
    assert len(taken["a"]) == len(rounds)


def test_the_least_rounds_are_taken_even_without_a_budget() -> None:
    """With no time at all there are still enough rounds for a median."""
    taken = sample({name: lambda: SAMPLE for name in "ab"}, Length(0.0), random.Random(2), never)
    assert list(taken["b"]) == list(range(LEAST_ROUNDS))


def test_one_that_raises_leaves_the_rounds_and_the_others_go_on() -> None:
    """A failure is reported, its samples are dropped, and nobody else's are; if all fail, the rounds end."""
    heard: list[tuple[str, str]] = []

    def fail() -> str:
        raise RuntimeError("no")

    def failed(name: str, error: Exception) -> None:
        heard.append((name, str(error)))

    turns: dict[str, Callable[[], str]] = {"base": lambda: SAMPLE, "bad": fail}
    taken = sample(turns, Length(0.0), random.Random(2), failed)
    assert heard == [("bad", "no")]
    assert set(taken) == {"base"}
    assert len(taken["base"]) == LEAST_ROUNDS
    assert sample({"bad": fail}, Length(60.0), random.Random(2), failed) == {}


@pytest.mark.parametrize(("call_s", "count"), [(1e-6, 3), (0.003, 3), (0.0031, 1), (60.0, 1)])
def test_longer_calls_have_fewer_timings(call_s: float, count: int) -> None:
    """A call of more than 3 ms is timed once."""
    assert timings(call_s) == count
