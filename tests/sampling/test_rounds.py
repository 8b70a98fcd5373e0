"""Rounds: who takes a turn in which, and when they end."""

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable

from scipy.stats import trim_mean

from bench.sampling.rounds import LEAST_ROUNDS, SURE_ROUNDS, StoppingRule, sample
from bench.sampling.samples import Sample
from bench.stats.replicates import round_differences, t_half_width


def sample_of(value_s: float) -> Sample:
    """Return a sample of one timing."""
    return Sample((value_s,), 0, 0)


def never(_name: str, error: Exception) -> None:
    """Fail the test when an implementation does."""
    raise error


def test_every_round_times_every_implementation_once_in_a_random_order() -> None:
    """Over twenty rounds of three and more, each comes once a round, and each comes first at times."""
    order: list[str] = []
    noise = random.Random(1)

    def turn(name: str) -> Callable[[], Sample]:
        def take() -> Sample:
            order.append(name)
            return sample_of(1 + noise.random())

        return take

    turns = {name: turn(name) for name in "abc"}
    limits = StoppingRule(target=1e-9, budget_s=0.3, processes=3)
    taken = sample(turns, dict.fromkeys(turns, "a"), limits, random.Random(2), never)
    rounds = [order[start : start + 3] for start in range(0, len(order), 3)]
    assert len(rounds) >= 20
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert set(Counter(names[0] for names in rounds)) == {"a", "b", "c"}
    assert len(taken["a"].rounds) == len(rounds)


def test_who_reached_the_target_leaves_and_the_baseline_stays() -> None:
    """A quiet implementation is done after the least rounds, while a noisy one and the baseline go on."""
    noise = random.Random(1)
    turns = {
        "base": lambda: sample_of(1.0),
        "quiet": lambda: sample_of(0.5),
        "noisy": lambda: sample_of(1 + noise.random()),
    }
    limits = StoppingRule(target=0.01, budget_s=0.05, processes=3)
    taken = sample(turns, dict.fromkeys(turns, "base"), limits, random.Random(2), never)
    assert len(taken["quiet"].rounds) == SURE_ROUNDS
    assert len(taken["noisy"].rounds) == len(taken["base"].rounds) > SURE_ROUNDS


def test_what_ends_by_the_target_is_known_about_as_well_as_it_says() -> None:
    """Rounds that agree by luck end no row: over many processes the ratios scatter little more than they may."""
    noise, target, processes = random.Random(1), 0.02, 5
    turns = {name: lambda: sample_of(math.exp(noise.gauss(0, 0.05))) for name in ("base", "other")}
    logs = []
    for seed in range(200):
        taken = sample(
            turns, dict.fromkeys(turns, "base"), StoppingRule(target, 1.0, processes), random.Random(seed), never
        )
        base, other = taken["base"], taken["other"]
        differences = round_differences(other.values_s, other.rounds, base.values_s, base.rounds)
        logs.append(float(trim_mean(differences, 0.25)))
    assert t_half_width(statistics.stdev(logs), processes) < 1.25 * target


def test_the_least_rounds_are_taken_even_without_a_budget() -> None:
    """With no time at all there are still enough rounds for a median."""
    noise = random.Random(1)
    turns = {name: lambda: sample_of(1 + noise.random()) for name in "ab"}
    taken = sample(turns, dict.fromkeys(turns, "a"), StoppingRule(1e-9, 0.0, 3), random.Random(2), never)
    assert taken["b"].rounds == tuple(range(LEAST_ROUNDS))


def test_one_that_raises_leaves_the_rounds_and_the_others_go_on() -> None:
    """A failure is told, its samples are dropped, and nobody else's are."""
    told: list[tuple[str, str]] = []

    def fail() -> Sample:
        raise RuntimeError("no")

    turns: dict[str, Callable[[], Sample]] = {"base": lambda: sample_of(1.0), "bad": fail}
    taken = sample(
        turns,
        dict.fromkeys(turns, "base"),
        StoppingRule(0.01, 1.0, 3),
        random.Random(2),
        lambda name, error: told.append((name, str(error))),
    )
    assert told == [("bad", "no")]
    assert set(taken) == {"base"}
    assert len(taken["base"].rounds) >= LEAST_ROUNDS


def test_without_a_baseline_the_budget_decides() -> None:
    """When the baseline is not there, there is no ratio to know, and rounds go on for the budget."""
    turns = {"only": lambda: sample_of(1.0)}
    taken = sample(turns, {"only": "base"}, StoppingRule(0.01, 0.02, 3), random.Random(2), never)
    assert len(taken["only"].rounds) > LEAST_ROUNDS


def test_each_turn_has_its_own_baseline() -> None:
    """Of two families in the same rounds, the quiet one leaves whole; the other's baseline stays."""
    noise = random.Random(1)
    turns = {
        "a": lambda: sample_of(1.0),
        "of a": lambda: sample_of(0.5),
        "b": lambda: sample_of(2.0),
        "of b": lambda: sample_of(1 + noise.random()),
    }
    baselines = {"a": "a", "of a": "a", "b": "b", "of b": "b"}
    taken = sample(turns, baselines, StoppingRule(0.01, 0.05, 3), random.Random(2), never)
    assert len(taken["a"].rounds) == len(taken["of a"].rounds) == SURE_ROUNDS
    assert len(taken["b"].rounds) == len(taken["of b"].rounds) > SURE_ROUNDS
