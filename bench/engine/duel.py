"""A duel: two sides measured in ever more processes, until every row is decided or the last look is over."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.analyse.duel import Row, Sides, rows
from bench.engine.run import Run
from bench.plan.case import Point
from bench.stats.limits import Limits
from bench.stats.sequential import USUAL

Begun = Callable[[int, int, int], None]
"""`begun(process, look, points)` is told before each process which look it is for, and how many points are open."""


def _unheard(_process: int, _look: int, _points: int) -> None: ...


class Contest(Protocol):
    """Where two sides are measured: in one run's processes, or in pairs of processes."""

    def measure(self, point: Point, processes: int) -> object:
        """Measure a point until there are so many processes."""

    def renew(self) -> None:
        """See to it that the next process of a point is a fresh one."""

    def sides(self, point: Point) -> Sides:
        """Return the records of a point, side A's and side B's."""


class Together(Run):
    """An ordinary run of two implementations, the first of them the baseline; it needs both."""

    @property
    def _needed(self) -> Sequence[str]:
        return self.sweep.implementations

    def sides(self, point: Point) -> Sides:
        """Return the records of a point, those of the baseline and those of the other implementation."""
        a, b = (self.records(point, name) for name in self.sweep.implementations)
        return a, b


@dataclass(frozen=True)
class Look:
    """What is known after so many processes."""

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
    begun: Begun = _unheard,
) -> Iterator[Look]:
    """Measure the points until all are decided, yielding each look; a point that is decided is measured no more.

    Every process measures all points that are open, and is then replaced by a fresh one.
    """

    def seen() -> list[Row]:
        return rows({point: contest.sides(point) for point in points}, looks, limits)

    done = 0
    for processes in looks:
        for number in range(done + 1, processes + 1):
            undecided = [row.point for row in seen() if not row.is_decided]
            begun(number, processes, len(undecided))
            for point in undecided:
                contest.measure(point, number)
            contest.renew()
        done = processes
        look = Look(processes, seen())
        yield look
        if look.is_last:
            return
