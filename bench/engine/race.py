"""The race over the points of a run: a base for each, then further replicates where they soonest give a good answer."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.analyse.standing import Answer, rough
from bench.engine.schedule import Measuring, complete
from bench.machine import monotonic
from bench.plan.case import Point
from bench.plan.layers import flops
from bench.sampling.rounds import LEAST_ROUNDS, Length

UNKNOWN_GROWTH = 3.0
"""The expected further data, as a multiple of the data so far, if it can't be estimated."""


def work(point: Point) -> float:
    """Return how long a point takes relative to the smallest one, which takes 1."""
    return 1.0 + float(flops(point) or 0) / point.kind.doubling_flops


Answered = Callable[[Point, Answer], None]
"""`answered(point, answer)` is called after each answer at a point, the first one after its base."""


@dataclass
class Entry:
    """A point in a race, its latest answer, and the cost of a replicate.

    In the latest replicate a member took `beside_s` seconds outside the rounds and `round_s` in each of the
    `latest_rounds`. The next replicate takes sqrt(process cost / round cost * round variance / process variance)
    `rounds` (Kalibera and Jones, ISMM 2013).
    """

    point: Point
    answer: Answer = field(default_factory=Answer)
    beside_s: float = 0.0
    round_s: float = 0.0
    latest_rounds: int = 0
    rounds: float = LEAST_ROUNDS

    @property
    def members(self) -> int:
        """The number of candidates."""
        return len(self.answer.candidates)

    @property
    def bound(self) -> float:
        """The bound of the answer, infinite if unknown."""
        return math.inf if math.isnan(self.answer.bound) else self.answer.bound

    @property
    def least_s(self) -> float:
        """The seconds of the shortest possible replicate."""
        return self.members * (self.beside_s + LEAST_ROUNDS * self.round_s)

    @property
    def expected_s(self) -> float:
        """The expected seconds until the answer is good, in replicates of `rounds` rounds."""
        replicates = sum(
            max(1.0, (UNKNOWN_GROWTH if math.isnan(growth) else growth) * self.answer.replicates)
            for growth in self.answer.needed
        )
        return replicates * (self.beside_s + self.rounds * self.round_s)


class Race:
    """The race of a run until all points have a good answer or the time is up.

    The point that is expected to have a good answer soonest comes first, or without one in time the point with the
    largest bound. All points get a rough answer before the race goes on to a finer bound.
    `end_s` is its end on the monotonic clock. Bases are taken even after it, unless the user set the time: then a base
    that isn't expected to end in time waits for another session, so that the others are measured well.
    Every point has an answer from its base on, so a race can be stopped at any moment. A resumed race uses earlier
    results.
    """

    def __init__(self, run: Measuring, points: Sequence[Point], end_s: float, answered: Answered) -> None:
        self._run = run
        self._points = points
        self._end_s = end_s
        self._answered = answered
        self._bound = rough(run.sweep.effort.bound)
        self._poolings = 0
        self._replicate_s = 0.0
        # points with little work come first, so that there are answers soon
        self._entries = [Entry(point) for point in sorted(points, key=work)]

    def measured(self) -> Iterator[Point]:
        """Measure until all points have a good answer or the time is up, then yield the points."""
        self._entries = [entry for entry in self._entries if self._base(entry)]
        self._measure_on()
        if self._bound > self._run.sweep.effort.bound:
            self._bound = self._run.sweep.effort.bound
            for entry in self._entries:
                self._answer(entry)
            self._measure_on()
        yield from self._points

    def _measure_on(self) -> None:
        """Measure further replicates until all answers are good or the time is up."""
        while entries := [entry for entry in self._entries if entry.members and entry.least_s < self._left_s]:
            in_time = [entry for entry in entries if entry.expected_s < self._left_s]
            soonest = min(in_time, key=lambda entry: entry.expected_s, default=None)
            self._measure_next(soonest or max(entries, key=lambda entry: entry.bound))

    @property
    def _left_s(self) -> float:
        return self._end_s - monotonic.now_s()

    def _base(self, entry: Entry) -> bool:
        """Take the base of a point and return True, or return False if it waits.

        Its expected time is the latest replicate's, scaled by its work; the first replicate also compiles. The first
        base of a session never waits.
        """
        effort = self._run.sweep.effort
        expected_s = effort.processes * self._replicate_s * work(entry.point)
        is_late = effort.within_s is not None and expected_s and expected_s > self._left_s
        if is_late and self._run.missing(entry.point):
            return False

        def replicate(_point: Point, names: Sequence[str], length: Length) -> None:
            self._replicate_s = self._measure(entry, names, length) / work(entry.point)

        complete(self._run, entry.point, effort.processes, replicate)
        self._answer(entry)
        return True

    def _measure_next(self, entry: Entry) -> None:
        """Measure the candidates of a point in one more replicate, which the remaining time may shorten."""
        room_s = self._left_s - entry.members * entry.beside_s
        rounds_s = min(entry.members * entry.rounds * entry.round_s, room_s)
        self._measure(entry, entry.answer.candidates, Length(rounds_s), with_baseline=False)
        self._answer(entry)

    def _measure(self, entry: Entry, names: Sequence[str], length: Length, *, with_baseline: bool = True) -> float:
        """Take a replicate, note its cost, and return its seconds."""
        began_s = monotonic.now_s()
        done = self._run.replicate(entry.point, names, length, with_baseline=with_baseline)
        took_s = monotonic.now_s() - began_s
        entry.beside_s = max(0.0, took_s - done.rounds_s) / len(names)
        entry.round_s = done.rounds_s / max(1, done.rounds) / len(names)
        entry.latest_rounds = done.rounds
        return took_s

    def _answer(self, entry: Entry) -> None:
        """Update the answer at a point, and at all others if their errors have changed."""
        summary, bound = self._run.summary, self._bound
        entry.answer = self._run.answer(entry.point, bound)
        if entry.round_s:
            share = entry.beside_s / entry.round_s * summary.scatter(entry.point)
            entry.rounds = max(LEAST_ROUNDS, math.sqrt(share * entry.latest_rounds))
        have_changed, self._poolings = summary.poolings > self._poolings, summary.poolings
        for other in self._entries if have_changed else ():
            before, other.answer = other.answer, self._run.answer(other.point, bound)
            if other.answer.is_good != before.is_good and other is not entry:
                self._answered(other.point, other.answer)
        self._answered(entry.point, entry.answer)
