"""A run whose rounds hold the points that differ in one column alone, so that their ratios are paired."""

from collections.abc import Iterator, Sequence
from functools import partial

from bench.engine.race import Answered
from bench.engine.replicate import Replicate
from bench.engine.run import Run
from bench.engine.worker import unheard
from bench.plan.across import groups
from bench.plan.case import Case, Point
from bench.sampling.rounds import Length


class Across(Run):
    """A run in equal shares that measures all points of a group together; a case that fails is not tried again."""

    def measured(self, points: Sequence[Point] = (), answered: Answered = unheard) -> Iterator[Point]:
        """Measure groups of points, and yield the points of each when it is measured."""
        del answered
        effort = self.sweep.effort
        for group in groups(points or self.sweep.points, self.sweep.across):
            self.end_unneeded(group[0])
            for point in group:
                self.leave_out(point, effort.processes)
            while any(map(self.missing, group)):
                self._together(group, Length(len(group) * effort.budget_s / effort.processes))
            yield from group
        self.tabulate()

    def _together(self, group: Sequence[Point], length: Length) -> None:
        """Measure all cases of a group in one replicate, with the same seed and number."""
        self._dismiss(group[0])
        names = {
            point: [name for name in self.sweep.implementations if name not in self.failed(point)] for point in group
        }
        members = [self.member(Case(point, name)) for point in group for name in names[point]]
        members.sort(key=lambda member: -member.point.threads)  # the first says which cores all may use
        number, seed = max(map(self.next_process, group)), self.seed(group[0])
        replicate = Replicate(members, None, length, seed, number, heard=partial(self.heard, group[0], number))
        replicate.measure(self.sweep.effort.timeout_s)
        for point in group:
            own = [member for member in members if member.case.point == point]
            self.write([each.record(number, replicate.started, replicate.seed, self.environment) for each in own])
