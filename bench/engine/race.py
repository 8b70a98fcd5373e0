"""The race over the points of a run: a base for each, then looks at the points that are soonest answered."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.analyse.forecast import works
from bench.analyse.standing import Look, rough
from bench.machine import monotonic
from bench.plan.case import Point
from bench.sampling.rounds import LEAST_ROUNDS, Length

if TYPE_CHECKING:
    from bench.engine.run import Run

UNKNOWN_GROWTH = 3.0
"""How many times as much as was measured is expected to be needed if nothing tells."""

Looked = Callable[[Point, Look], None]
"""`looked(point, look)` is called after each look at a point, the first one after its base."""


@dataclass
class Heat:
    """The points that are measured in the same rounds, their latest looks, and what a replicate of them takes.

    In the latest replicate a member took `beside_s` seconds outside the rounds and `round_s` in each of the `latest`
    rounds. The next look takes `rounds` rounds: as many as a process costs, times how much more rounds scatter than
    processes, to the power of a half (Kalibera and Jones, ISMM 2013).
    """

    points: list[Point]
    looks: dict[Point, Look] = field(default_factory=dict)
    beside_s: float = 0.0
    round_s: float = 0.0
    latest: int = 0
    rounds: float = LEAST_ROUNDS

    @property
    def members(self) -> int:
        """The number of those that are left at all points together."""
        return sum(len(each.left) for each in self.looks.values())

    @property
    def bound(self) -> float:
        """The largest bound of a point that isn't answered, infinite if one isn't known."""
        bounds = [each.bound for each in self.looks.values() if each.left]
        return math.inf if any(map(math.isnan, bounds)) else max(bounds, default=0.0)

    @property
    def least_s(self) -> float:
        """The seconds of the shortest look."""
        return self.members * (self.beside_s + LEAST_ROUNDS * self.round_s)

    @property
    def expected_s(self) -> float:
        """The seconds until the points are expected to be answered, in looks of so many rounds."""
        looks = sum(
            max(1.0, (UNKNOWN_GROWTH if math.isnan(growth) else growth) * each.replicates)
            for each in self.looks.values()
            for growth in each.growths
        )
        return looks * (self.beside_s + self.rounds * self.round_s)


class Race:
    """The race of a run until all points are answered or the time is up.

    The point that is soonest answered comes first; if none is expected to be answered in time, that with the largest
    bound. All points get a rough answer first; only then the race goes on to a finer bound.
    `end_s` is the time of the monotonic clock at which it ends; the base is taken all the same, unless the time was
    asked for: then a base waits for another session if it isn't expected to end in time, so that the others are
    measured well. Every point has an answer from its base on, so a race can be stopped at any moment. One that goes on
    later begins with what is known.
    """

    def __init__(self, run: "Run", points: Sequence[Point], end_s: float, looked: Looked) -> None:
        self._run = run
        self._end_s = end_s
        self._looked = looked
        self._bound = rough(run.sweep.effort.bound)
        self._lendings = 0
        self._replicate_s = 0.0
        together = dict.fromkeys(tuple(run.together(point)) for point in points)
        # points of little work come first, so that there are answers soon
        self._heats = sorted((Heat([*each]) for each in together), key=lambda heat: works(heat.points))

    def go(self) -> None:
        """Measure until all points are answered or the time is up."""
        self._heats = [heat for heat in self._heats if self._base(heat)]
        self._answer()
        if self._bound > self._run.sweep.effort.bound:
            self._bound = self._run.sweep.effort.bound
            for heat in self._heats:
                self._look(heat)
            self._answer()

    def _answer(self) -> None:
        """Take looks until all points are answered or the time is up."""
        while heats := [heat for heat in self._heats if heat.members and heat.least_s < self._left_s]:
            in_time = [heat for heat in heats if heat.expected_s < self._left_s]
            soonest = min(in_time, key=lambda heat: heat.expected_s, default=None)
            self._take(soonest or max(heats, key=lambda heat: heat.bound))

    @property
    def _left_s(self) -> float:
        return self._end_s - monotonic.now_s()

    def _base(self, heat: Heat) -> bool:
        """Take the base of a heat, and return True; False if it waits.

        It is expected to take as long as the latest replicates by its work, of which the first compiles too. The first
        base that a session takes never waits.
        """
        effort = self._run.sweep.effort
        expected_s = effort.processes * self._replicate_s * works(heat.points)
        if effort.within_s is not None and expected_s and expected_s > self._left_s and self._missing(heat):
            return False
        for point in heat.points:
            self._run.leave_out(point, effort.processes)
        while missing := self._missing(heat):
            began_s = monotonic.now_s()
            self._measure(heat, missing, effort.budget_s / effort.processes * len(missing))
            self._replicate_s = (monotonic.now_s() - began_s) / works(heat.points)
        self._look(heat)
        return True

    def _missing(self, heat: Heat) -> dict[Point, list[str]]:
        return {point: names for point in heat.points if (names := self._run.missing_in_base(point))}

    def _take(self, heat: Heat) -> None:
        """Take a look, as far as there is time."""
        names = {point: each.left for point, each in heat.looks.items() if each.left}
        room_s = self._left_s - heat.members * heat.beside_s
        self._measure(heat, names, min(heat.members * heat.rounds * heat.round_s, room_s), is_look=True)
        self._look(heat)

    def _measure(
        self, heat: Heat, names: Mapping[Point, Sequence[str]], rounds_s: float, *, is_look: bool = False
    ) -> None:
        began_s = monotonic.now_s()
        done = self._run.replicate(names, Length(rounds_s), is_look=is_look)
        took_s, count = monotonic.now_s() - began_s, sum(map(len, names.values()))
        heat.beside_s = max(0.0, took_s - done.rounds_s) / count
        heat.round_s = done.rounds_s / max(1, done.rounds) / count
        heat.latest = done.rounds

    def _look(self, heat: Heat) -> None:
        """Look at the points of a heat, and at those of all others if the errors of all have changed."""
        summary, bound = self._run.summary, self._bound
        heat.looks = {point: self._run.look(point, bound) for point in heat.points}
        if heat.round_s:
            scatter = max(summary.scatter(point) for point in heat.points)
            heat.rounds = max(LEAST_ROUNDS, math.sqrt(heat.beside_s / heat.round_s * scatter * heat.latest))
        have_changed, self._lendings = summary.lendings > self._lendings, summary.lendings
        for other in self._heats if have_changed else ():
            for point, before in [*other.looks.items()]:
                other.looks[point] = each = self._run.look(point, bound)
                if each.is_answered != before.is_answered and other is not heat:
                    self._looked(point, each)
        for point, each in heat.looks.items():
            self._looked(point, each)
        self._run.tabulate()
