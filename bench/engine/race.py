"""The race over the points of a run: a base for each, then further replicates where an answer is soonest good."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.analyse.forecast import works
from bench.analyse.standing import Answer, rough
from bench.engine.schedule import Measuring, Missing, complete
from bench.machine import monotonic
from bench.plan.case import Point
from bench.sampling.rounds import LEAST_ROUNDS, Length

UNKNOWN_GROWTH = 3.0
"""How many times as much as was measured is expected to be needed if nothing tells."""

Answered = Callable[[Point, Answer], None]
"""`answered(point, answer)` is called after each answer at a point, the first one after its base."""


@dataclass
class Group:
    """The points that are measured in the same rounds, their latest answers, and what a replicate of them takes.

    In the latest replicate a member took `beside_s` seconds outside the rounds and `round_s` in each of the
    `latest_rounds`. The next replicate takes sqrt(process cost / round cost * round variance / process variance)
    `rounds` (Kalibera and Jones, ISMM 2013).
    """

    points: list[Point]
    answers: dict[Point, Answer] = field(default_factory=dict)
    beside_s: float = 0.0
    round_s: float = 0.0
    latest_rounds: int = 0
    rounds: float = LEAST_ROUNDS

    @property
    def members(self) -> int:
        """The number of candidates at all points together."""
        return sum(len(each.candidates) for each in self.answers.values())

    @property
    def bound(self) -> float:
        """The largest bound of an answer that isn't good, infinite if one isn't known."""
        bounds = [each.bound for each in self.answers.values() if not each.is_good]
        return math.inf if any(map(math.isnan, bounds)) else max(bounds, default=0.0)

    @property
    def least_s(self) -> float:
        """The seconds of the shortest replicate."""
        return self.members * (self.beside_s + LEAST_ROUNDS * self.round_s)

    @property
    def expected_s(self) -> float:
        """The seconds until all answers are expected to be good, in replicates of so many rounds."""
        replicates = sum(
            max(1.0, (UNKNOWN_GROWTH if math.isnan(growth) else growth) * each.replicates)
            for each in self.answers.values()
            for growth in each.needed
        )
        return replicates * (self.beside_s + self.rounds * self.round_s)


class Race:
    """The race of a run until all points have a good answer or the time is up.

    The point whose answer is soonest good comes first; if none is expected to be so in time, that with the largest
    bound. All points get a rough answer first; only then the race goes on to a finer bound.
    `end_s` is the time of the monotonic clock at which it ends; the base is taken all the same, unless the time was
    asked for: then a base waits for another session if it isn't expected to end in time, so that the others are
    measured well. Every point has an answer from its base on, so a race can be stopped at any moment. One that goes on
    later begins with what is known.
    """

    def __init__(self, run: Measuring, points: Sequence[Point], end_s: float, answered: Answered) -> None:
        self._run = run
        self._points = points
        self._end_s = end_s
        self._answered = answered
        self._bound = rough(run.sweep.effort.bound)
        self._poolings = 0
        self._replicate_s = 0.0
        together = dict.fromkeys(tuple(run.together(point)) for point in points)
        # points of little work come first, so that there are answers soon
        self._groups = sorted((Group([*each]) for each in together), key=lambda group: works(group.points))

    def measured(self) -> Iterator[Point]:
        """Measure until all points have a good answer or the time is up, then yield the points."""
        self._groups = [group for group in self._groups if self._base(group)]
        self._measure_on()
        if self._bound > self._run.sweep.effort.bound:
            self._bound = self._run.sweep.effort.bound
            for group in self._groups:
                self._answer(group)
            self._measure_on()
        yield from self._points

    def _measure_on(self) -> None:
        """Measure on until all answers are good or the time is up."""
        while groups := [group for group in self._groups if group.members and group.least_s < self._left_s]:
            in_time = [group for group in groups if group.expected_s < self._left_s]
            soonest = min(in_time, key=lambda group: group.expected_s, default=None)
            self._measure_next(soonest or max(groups, key=lambda group: group.bound))

    @property
    def _left_s(self) -> float:
        return self._end_s - monotonic.now_s()

    def _base(self, group: Group) -> bool:
        """Take the base of a group, and return True; False if it waits.

        It is expected to take as long as the latest replicates by its work, of which the first compiles too. The first
        base that a session takes never waits.
        """
        effort = self._run.sweep.effort
        expected_s = effort.processes * self._replicate_s * works(group.points)
        is_late = effort.within_s is not None and expected_s and expected_s > self._left_s
        if is_late and any(map(self._run.missing, group.points)):
            return False

        def replicate(missing: Missing, length: Length) -> None:
            self._replicate_s = self._measure(group, missing, length) / works(group.points)

        complete(self._run, group.points, effort.processes, replicate)
        self._answer(group)
        return True

    def _measure_next(self, group: Group) -> None:
        """Measure the candidates of a group in one more replicate, as far as there is time."""
        candidates = {point: each.candidates for point, each in group.answers.items() if each.candidates}
        room_s = self._left_s - group.members * group.beside_s
        rounds_s = min(group.members * group.rounds * group.round_s, room_s)
        self._measure(group, candidates, Length(rounds_s), with_baseline=False)
        self._answer(group)

    def _measure(self, group: Group, names: Missing, length: Length, *, with_baseline: bool = True) -> float:
        """Take a replicate, note what it cost, and return its seconds."""
        began_s = monotonic.now_s()
        done = self._run.replicate(names, length, with_baseline=with_baseline)
        took_s, count = monotonic.now_s() - began_s, sum(map(len, names.values()))
        group.beside_s = max(0.0, took_s - done.rounds_s) / count
        group.round_s = done.rounds_s / max(1, done.rounds) / count
        group.latest_rounds = done.rounds
        return took_s

    def _answer(self, group: Group) -> None:
        """Answer at the points of a group, and at those of all others if the errors of all have changed."""
        summary, bound = self._run.summary, self._bound
        group.answers = {point: self._run.answer(point, bound) for point in group.points}
        if group.round_s:
            scatter = max(summary.scatter(point) for point in group.points)
            group.rounds = max(LEAST_ROUNDS, math.sqrt(group.beside_s / group.round_s * scatter * group.latest_rounds))
        have_changed, self._poolings = summary.poolings > self._poolings, summary.poolings
        for other in self._groups if have_changed else ():
            for point, before in [*other.answers.items()]:
                other.answers[point] = each = self._run.answer(point, bound)
                if each.is_good != before.is_good and other is not group:
                    self._answered(point, each)
        for point, each in group.answers.items():
            self._answered(point, each)
