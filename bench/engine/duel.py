"""A sequential A/B test: both sides are measured in more and more processes until every row is decided.

A look is an interim analysis. After the last one, rows may be left undecided.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.analyse.duel import Row, Sides, rows
from bench.engine.run import Run
from bench.engine.worker import unheard
from bench.plan.case import Point
from bench.stats.limits import Limits
from bench.stats.sequential import USUAL

Begun = Callable[[int, int, int], None]
"""`begun(process, look, points)` is called before each process; `look` is the number of processes at the next look,
`points` that of undecided points."""


class Contest(Protocol):
    """A measurement of two sides, in the processes of one run or in pairs of processes."""

    def measure(self, point: Point, processes: int) -> object:
        """Measure a point until it has this many processes."""

    def renew(self) -> None:
        """Make the next process of a point a fresh one."""

    def sides(self, point: Point) -> Sides:
        """Return the records of a point, side A's and side B's."""


class Together(Run):
    """An ordinary run of two implementations, the first of which is the baseline."""

    def sides(self, point: Point) -> Sides:
        """Return the baseline's records of a point, and the other implementation's."""
        a, b = (self.records(point, name) for name in self.sweep.implementations)
        return a, b


@dataclass(frozen=True)
class Look:
    """An interim analysis after a number of processes."""

    processes: int
    rows: list[Row]

    @property
    def is_last(self) -> bool:
        """Whether nothing is left to decide."""
        return all(row.is_decided for row in self.rows)


def fight(
    contest: Contest,
    points: Sequence[Point],
    looks: Sequence[int],
    limits: Limits = USUAL,
    begun: Begun = unheard,
) -> Iterator[Look]:
    """Measure the points until all are decided, yielding each look; a decided point is not measured again.

    Every process measures all undecided points, and is then replaced by a fresh one.
    """

    def current_rows() -> list[Row]:
        return rows({point: contest.sides(point) for point in points}, looks, limits)

    done = 0
    for processes in looks:
        for number in range(done + 1, processes + 1):
            undecided = [row.point for row in current_rows() if not row.is_decided]
            begun(number, processes, len(undecided))
            for point in undecided:
                contest.measure(point, number)
            contest.renew()
        done = processes
        look = Look(processes, current_rows())
        yield look
        if look.is_last:
            return
