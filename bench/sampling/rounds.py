"""Rounds: each implementation is measured once in a round, in a new random order, until the ratios are known.

The caller says how a turn is taken: by an implementation in this process, or by another worker.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

from bench.sampling.samples import Sample
from bench.stats.replicates import expected_half_width, round_differences
from bench.store.record import Samples

LEAST_ROUNDS = 5
"""The fewest rounds, whatever the budget says.

A process costs about five of its calls before and after the rounds. With two rounds nearly all of the scatter between
processes came from the rounds: 7 of 8 % at the points of `quick`. Then rounds are worth more than further processes
(Kalibera and Jones, Rigorous benchmarking in reasonable time, ISMM 2013)."""

SURE_ROUNDS = 20
"""The fewest rounds before their scatter can end them: a check after every round stops at those that agree by chance.

From 5 on, rows of eight cases stopped at a scatter of 2.4 to 3.2 % between rounds, where 20 show 3.2 to 4.6 %;
over 40 runs of each kind the rows' means then scattered by 0.8 to 1.9 %, and by 0.5 to 1.5 % from 20 on.
"""


CHECKED_AGAIN = 1.05
"""The scatter is checked again when the number of rounds has grown by this factor."""


ByRound = dict[str, dict[int, Sample]]
"""The samples of each implementation by the number of the round."""


@dataclass(frozen=True)
class StoppingRule:
    """When rounds end: the half-width that every ratio's interval over `processes` would have, or the seconds."""

    target: float
    budget_s: float
    processes: int


def sample(
    turns: Mapping[str, Callable[[], Sample]],
    baselines: Mapping[str, str],
    limits: StoppingRule,
    rng: random.Random,
    failed: Callable[[str, Exception], None],
) -> dict[str, Samples]:
    """Take turns in rounds until every ratio is known to the target or the budget is spent.

    `baselines` names for each turn that of its baseline. A turn whose ratio is known to the target leaves the rounds,
    its baseline stays as long as it is needed; one that raises leaves them too, and `failed` is told.
    Returns the samples of those that did not fail.
    """
    taken: ByRound = {name: {} for name in turns}
    active = list(turns)
    end = perf_counter() + limits.budget_s
    number, check = 0, 0.0
    while active and (number < LEAST_ROUNDS or perf_counter() < end):
        for name in rng.sample(active, len(active)):
            try:
                taken[name][number] = turns[name]()
            except Exception as error:
                failed(name, error)
                active.remove(name)
                del taken[name]
        number += 1
        if number >= check:  # not after each round: there may be thousands
            active = _still_active(active, taken, baselines, limits)
            check = CHECKED_AGAIN * number
    return {name: _samples(by_round) for name, by_round in taken.items()}


def _samples(by_round: Mapping[int, Sample]) -> Samples:
    return Samples(
        rounds=tuple(by_round),
        timings_s=tuple(sample.timings_s for sample in by_round.values()),
        switches=tuple(sample.switches for sample in by_round.values()),
        faults=tuple(sample.faults for sample in by_round.values()),
        others=tuple(round(sample.others, 2) for sample in by_round.values()),
    )


def _still_active(active: list[str], taken: ByRound, baselines: Mapping[str, str], limits: StoppingRule) -> list[str]:
    """Return the turns that go on: those whose ratio is not known to the target, and the baselines of these.

    Without a baseline there are no ratios, so the others go on; a baseline by itself goes on until its time is known.
    """
    left = []
    for name in active:
        baseline = baselines[name]
        if baseline not in taken or (name != baseline and _undone(taken[name], taken[baseline], limits)):
            left.append(name)
    needed = {baselines[name] for name in left}
    by_itself = {name for name in active if [name] == [other for other in taken if baselines[other] == name]}
    needed |= {name for name in by_itself if _half_width(_logs(taken[name]), limits) > limits.target}
    return left + [name for name in active if name in needed and name not in left]


def _logs(by_round: Mapping[int, Sample]) -> list[float]:
    return [math.log(value) for value in _samples(by_round).values_s]


def _undone(by_round: Mapping[int, Sample], of_baseline: Mapping[int, Sample], limits: StoppingRule) -> bool:
    own, base = _samples(by_round), _samples(of_baseline)
    differences = round_differences(own.values_s, own.rounds, base.values_s, base.rounds)
    return _half_width(differences, limits) > limits.target


def _half_width(values: list[float], limits: StoppingRule) -> float:
    return math.inf if len(values) < SURE_ROUNDS else expected_half_width(values, limits.processes)
