"""Who wins over two axes at once: tokens, and heads or channels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analyse.crossover import lead
from bench.analyse.estimates import Interval
from bench.analyse.series import CHANNELS, HEADS, TOKENS, Axis, Row, gathered, moving, places, point_of
from bench.plan.case import Point
from bench.show.rows import measured, plain
from bench.show.verdict import Verdict, lead_over, verdict
from bench.show.words import slug


@dataclass(frozen=True)
class Cell:
    """The verdict on one point, and how many times as fast as another the fastest is.

    The other is the next, or of those that tie the last; without one there is no lead.
    """

    verdict: Verdict
    other: str = ""
    lead: Interval | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Who leads, fastest first."""
        return self.verdict.names

    @property
    def is_tie(self) -> bool:
        """Whether several lead."""
        return len(self.names) > 1


@dataclass(frozen=True)
class WinnerMap:
    """The cells by their place on the tokens and on the other axis; `point` is one of the points."""

    axis: Axis
    point: Point
    cells: dict[tuple[int, int], Cell]
    rows: tuple[Row, ...]

    @property
    def moving(self) -> set[str]:
        """The columns of the points that are not fixed in the map."""
        return moving(TOKENS, self.point) | moving(self.axis, self.point)

    @property
    def name(self) -> str:
        """The map in one word: a file name that stays the same whatever else was measured."""
        return f"winners-{TOKENS.name}-{self.axis.name}-{slug(self.point, self.moving)}"


def maps(table: pd.DataFrame) -> Iterator[WinnerMap]:
    """Yield a map for all points that differ in tokens and heads alone, or in tokens and channels.

    It needs two places on either axis and a point at which something was measured.
    """
    for axis in (HEADS, CHANNELS):
        for group in gathered(plain(table), (TOKENS, axis)):
            if min(len(places(group, TOKENS)), len(places(group, axis))) > 1 and measured(group):
                cells = {place: _cell(rows) for place, rows in _by_place(group, axis).items()}
                yield WinnerMap(axis, point_of(group[0]), cells, tuple(group))


def _by_place(group: Sequence[Row], axis: Axis) -> dict[tuple[int, int], list[Row]]:
    found: dict[tuple[int, int], list[Row]] = {}
    for row in group:
        found.setdefault((row[TOKENS.column], row[axis.column]), []).append(row)
    return found


def _cell(rows: Sequence[Row]) -> Cell:
    found, fastest = verdict(rows), measured(rows)
    if len(fastest) < 2:
        return Cell(found)
    other = fastest[max(1, len(found.names) - 1)]
    return Cell(found, other["implementation"], _lead(fastest[0], other))


def _lead(first: Row, other: Row) -> Interval:
    """Return how many times as fast as another the fastest is; results of before schema 4 don't have it paired."""
    return lead(first, other) if other.get("lead") is None else lead_over(other)
