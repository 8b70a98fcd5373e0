"""Rounds: who takes a turn in which, and when they end."""

import random
from collections import Counter
from collections.abc import Callable

from bench.sampling.rounds import LEAST_ROUNDS, Length, sample

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
