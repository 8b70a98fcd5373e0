"""The race over the points of a run: the base of all, then further replicates, by a run that is made up.

Its clock is set by hand.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.analyse.standing import Answer
from bench.engine.race import Race
from bench.engine.schedule import Measuring
from bench.plan.case import Point
from bench.plan.sweep import Effort
from bench.sampling.rounds import LEAST_ROUNDS, Length
from tests.clock import Clock
from tests.make.points import point

EFFORT = Effort(processes=2, budget_s=4.0, race=True)
NAMES = ("a", "b", "c")
SMALL, MEDIUM, LARGE = (point(num_tokens=tokens) for tokens in (5, 7, 9))

Taken = tuple[Point, tuple[str, ...], bool]
"""The point of a replicate, its implementations, and whether it comes after the base."""


class ScriptedRun:
    """A run whose answers are good after a number of further replicates; `growths` has the needed multiples.

    A process takes `beside_s` beside its rounds, and `round_s` in each, of a clock that is set by hand.
    """

    def __init__(
        self, clock: Clock, to_come: Mapping[Point, int], growths: Mapping[Point, float] | None = None
    ) -> None:
        self.sweep = SimpleNamespace(effort=EFFORT)
        self.finer: dict[Point, int] = {}
        self.summary = self
        self.poolings = 0  # no point changes the answers of the others
        self.taken: list[Taken] = []
        self.lengths: list[float] = []
        self.beside_s, self.round_s, self.share = 1.0, 0.1, 0.0
        self.base = dict.fromkeys(to_come, 0)
        self.left = dict(to_come)
        self._clock, self._growths = clock, growths or {}

    def leave_out(self, _point: Point, _processes: int) -> None:
        """Leave out nothing."""

    def missing(self, point: Point, processes: int = EFFORT.processes) -> list[str]:
        """Return all implementations until the base is taken."""
        return [*NAMES] if self.base[point] < processes else []

    def replicate(self, point: Point, names: Sequence[str], length: Length, *, with_baseline: bool = True) -> Any:
        """Note a replicate, and move the clock."""
        self.taken.append((point, (*names,), not with_baseline))
        self.lengths.append(length.budget_s)
        count = self.base if with_baseline else self.left
        count[point] += 1 if with_baseline else -1
        members = len(names)
        rounds = max(LEAST_ROUNDS, math.ceil(length.budget_s / (members * self.round_s) - 1e-9))
        rounds_s = rounds * members * self.round_s
        self._clock.now_s += members * self.beside_s + rounds_s
        return SimpleNamespace(rounds_s=rounds_s, rounds=rounds)

    def answer(self, point: Point, bound: float) -> Answer:
        """Return that two of the three are candidates while replicates are to come, more of them for a finer bound."""
        if self.left[point] + (self.finer.get(point, 0) if bound < EFFORT.bound else 0) <= 0:
            return Answer("a", 0.01, replicates=2)
        return Answer("a", 0.1, ("a", "c"), (self._growths.get(point, 1.0),) * 2, 2)

    def scatter(self, _point: Point) -> float:
        """Return by how much more rounds scatter than processes."""
        return self.share

    @property
    def tokens(self) -> list[tuple[int, bool]]:
        """The tokens of each replicate's point, and whether it came after its base."""
        return [(point.num_tokens, is_further) for point, _, is_further in self.taken]


NEVER = 10**6


def raced(run: ScriptedRun, *points: Point, end_s: float = 1e9) -> list[tuple[Point, Answer]]:
    """Run a race, and return its judgements."""
    judged: list[tuple[Point, Answer]] = []
    measuring = Race(cast(Measuring, run), points, end_s, lambda point, answer: judged.append((point, answer)))
    assert [*measuring.measured()] == [*points]
    return judged


def test_the_base_of_all_points_is_taken_without_any_time(clock: Clock) -> None:
    """Two processes of all implementations at each point, and no more, which would take time that isn't there."""
    run = ScriptedRun(clock, {SMALL: NEVER, LARGE: NEVER})
    raced(run, SMALL, LARGE, end_s=0.0)
    assert run.taken == [(each, NAMES, False) for each in (SMALL, SMALL, LARGE, LARGE)]
    assert run.lengths == [EFFORT.budget_s / EFFORT.processes] * 4


@pytest.mark.parametrize(("within_s", "taken"), [(10.0, [5, 5]), (30.0, [5, 5, 7, 7]), (None, [5, 5, 7, 7, 9, 9])])
def test_a_base_waits_that_is_not_expected_to_end_in_the_time_that_was_asked_for(
    clock: Clock, within_s: float | None, taken: list[int]
) -> None:
    """The base of a point takes 10.5 s here. The first is always taken, and another session begins with what waits."""
    run = ScriptedRun(clock, dict.fromkeys((SMALL, MEDIUM, LARGE), 0))
    run.sweep.effort = dataclasses.replace(EFFORT, within_s=within_s)
    judged = raced(run, SMALL, MEDIUM, LARGE, end_s=within_s or 10.0)
    assert [tokens for tokens, _ in run.tokens] == taken
    assert len(judged) == len({*taken})
    run.taken = []
    raced(run, SMALL, MEDIUM, LARGE, end_s=0.0)
    assert [tokens for tokens, _ in run.tokens][:2] == ([7, 7], [9, 9], [])[len({*taken}) - 1]


def test_after_the_base_only_candidates_are_measured(clock: Clock) -> None:
    """The race goes on until the answer is good; each judgement is reported, that after the base too.

    Points with little work come first in any sweep, so there are answers soon.
    """
    run = ScriptedRun(clock, {LARGE: 2, SMALL: 0, MEDIUM: 0})
    judged = raced(run, LARGE, SMALL, MEDIUM)
    assert run.tokens == [*((tokens, False) for tokens in (5, 5, 7, 7, 9, 9)), (9, True), (9, True)]
    assert run.taken[-2:] == [(LARGE, ("a", "c"), True)] * 2
    assert [each for each, _ in judged] == [SMALL, MEDIUM, LARGE, LARGE, LARGE]
    assert [answer.is_good for _, answer in judged] == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("growths", "first"),
    [((9.0, 0.5), LARGE), ((0.5, 9.0), SMALL), ((math.nan, 2.5), LARGE), ((math.nan, 3.5), SMALL)],
)
def test_the_point_that_is_expected_to_be_answered_soonest_comes_first(
    growths: tuple[float, float], first: Point, clock: Clock
) -> None:
    """Points of the same cost are ordered by their remaining need; an unknown one counts as three times as much."""
    run = ScriptedRun(clock, {SMALL: 3, LARGE: 3}, dict(zip((SMALL, LARGE), growths, strict=True)))
    raced(run, SMALL, LARGE)
    further = [point for point, _, is_further in run.taken if is_further]
    assert further == [first] * 3 + [LARGE if first is SMALL else SMALL] * 3


def test_a_race_ends_when_its_time_is_up(clock: Clock) -> None:
    """Another replicate would take longer than the remaining time; the last one fills it."""
    run = ScriptedRun(clock, {SMALL: NEVER})
    run.share = 100.0
    shortest_s = 2 * (run.beside_s + LEAST_ROUNDS * run.round_s)
    for more_s in (0.9 * shortest_s, 1.1 * shortest_s, 30.0, 100.0):
        clock.now_s, run.base, run.taken = 0.0, {SMALL: 0}, []
        raced(run, SMALL, end_s=0.0)
        end_s = clock.now_s + more_s
        clock.now_s, run.base, run.taken = 0.0, {SMALL: 0}, []
        raced(run, SMALL, end_s=end_s)
        assert len(run.taken) > 2 or more_s < shortest_s
        assert end_s - shortest_s <= clock.now_s <= end_s + 2 * run.round_s


def test_a_replicate_has_more_rounds_the_more_a_process_costs(clock: Clock) -> None:
    """By the root of a process's cost in rounds, times how much more rounds scatter: the best split of the time."""
    run = ScriptedRun(clock, {SMALL: 1})
    run.beside_s, run.round_s, run.share = 10.0, 0.1, 4.0
    raced(run, SMALL)
    rounds = math.sqrt(10.0 / 0.1 * 4.0 * (EFFORT.budget_s / 2 / 0.3 + 1) // 1)
    assert run.lengths[-1] == pytest.approx(2 * 0.1 * rounds, rel=0.1)


def test_a_finer_bound_comes_after_a_good_answer_at_all_points(clock: Clock) -> None:
    """The small point could be answered finely at once, and waits for the first answer at the large one."""
    run = ScriptedRun(clock, {SMALL: 0, LARGE: 2})
    run.sweep.effort = dataclasses.replace(EFFORT, bound=EFFORT.bound / 2)
    run.finer = {SMALL: 1, LARGE: 1}
    raced(run, SMALL, LARGE, end_s=1000.0)
    further = [tokens for tokens, is_further in run.tokens if is_further]
    assert further[:2] == [LARGE.num_tokens] * 2
    assert sorted(further[2:]) == [SMALL.num_tokens, LARGE.num_tokens]
