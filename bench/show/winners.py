"""Who wins over two axes at once: tokens, and heads or channels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analyse.fastest import Outcome
from bench.analyse.scaling.series import CHANNELS, HEADS, TOKENS, Axis, Row, gathered, moving, places, point_of
from bench.plan.case import Point
from bench.show.rows import measured, plain
from bench.show.verdict import verdict


@dataclass(frozen=True)
class WinnerMap:
    """What is known of the fastest, by place on the tokens and on the other axis; `point` is one of the points."""

    axis: Axis
    point: Point
    cells: dict[tuple[int, int], Outcome]
    rows: tuple[Row, ...]

    @property
    def moving(self) -> set[str]:
        """The columns of the points that are not fixed in the map."""
        return moving(TOKENS, self.point) | moving(self.axis, self.point)

    @property
    def name(self) -> str:
        """The map in one word: a file name that stays the same whatever else was measured."""
        return f"winners-{TOKENS.name}-{self.axis.name}-{self.point.short_name(self.moving)}"


def maps(table: pd.DataFrame) -> Iterator[WinnerMap]:
    """Yield a map for all points that differ in tokens and heads alone, or in tokens and channels.

    It needs two places on either axis and a point at which something was measured.
    """
    for axis in (HEADS, CHANNELS):
        for group in gathered(plain(table), (TOKENS, axis)):
            if min(len(places(group, TOKENS)), len(places(group, axis))) > 1 and measured(group):
                cells = {place: verdict(rows) for place, rows in _by_place(group, axis).items()}
                yield WinnerMap(axis, point_of(group[0]), cells, tuple(group))


def _by_place(group: Sequence[Row], axis: Axis) -> dict[tuple[int, int], list[Row]]:
    found: dict[tuple[int, int], list[Row]] = {}
    for row in group:
        found.setdefault((row[TOKENS.column], row[axis.column]), []).append(row)
    return found
