"""The map of winners over tokens or keys, and heads or channels: a cell for each point, coloured by what to use."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any

import pandas as pd

from bench.analyse.axes import CHANNELS, HEADS, KEYS, TOKENS, Axis, gathered, moving, places
from bench.analyse.rows import Row, grouped, point_of
from bench.analyse.standing import ALONE, FASTEST, NAMED, Choice
from bench.plan.case import Point
from bench.show.answer import FASTEST_MEANS, certainty, choice_of, short
from bench.show.figures.page import text_width
from bench.show.picture import Marks, Panel, Picture, Scale, Shape
from bench.show.rows import devices, measured, origins, plain, process_count
from bench.show.text import parts

LINE_IN, ROOM_IN, LEAST_IN, TEXT_SIZE = 0.16, 0.2, 1.15, 8.0
"""The height of a line of a cell, the room around it, the least width of a cell, and the size of its text in points."""

PALEST, STRONGEST = 0.1, 0.4
"""The shares of an implementation's colour in a cell: text in the page's own colour can be read on both."""

SURENESS = "the stronger the colour, the surer; that of a compiled one is paler from the start"
"""What the colour of a cell says."""


@dataclass(frozen=True)
class WinnerMap:
    """What to use at each place on two axes, `along` tokens or keys, and `axis`; `point` is one of the points."""

    along: Axis
    axis: Axis
    point: Point
    cells: dict[tuple[int, int], Choice]
    rows: tuple[Row, ...]

    @property
    def varying(self) -> set[str]:
        """The columns of the points that are not fixed in the map."""
        return moving(self.along, self.point) | moving(self.axis, self.point)


def maps(table: pd.DataFrame) -> Iterator[WinnerMap]:
    """Yield a map for all points that differ in tokens and heads alone, or in tokens and channels; so of keys.

    It needs two places on either axis and a point at which something was measured.
    """
    rows = plain(table)
    for along, axis in product((TOKENS, KEYS), (HEADS, CHANNELS)):
        placed = [row for row in rows if row[along.column] is not None]
        for group in gathered(placed, (along, axis)):
            if min(len(places(group, along)), len(places(group, axis))) > 1 and measured(group):
                rows_at = grouped(group, itemgetter(along.column, axis.column))
                cells = {place: choice_of(rows) for place, rows in rows_at.items()}
                yield WinnerMap(along, axis, point_of(group[0]), cells, tuple(group))


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield the picture of every map that a table of results has points for."""
    return map(picture, maps(table))


def picture(of: WinnerMap) -> Picture:
    """Return the picture of a map."""
    widest = max(text_width(line, TEXT_SIZE, bold=True) for each in of.cells.values() for line in short(each))
    return Picture(
        name=f"winners-{of.along.name}-{of.axis.name}-{of.point.short_name(of.varying)}",
        heading=f"What to use over {of.along.name} and {of.axis.name}",
        facts=[*parts(of.point, without=of.varying), *devices(of.rows)],
        notes=[*_notes(of)],
        stacks=[[panel(of)]],
        width=len(places(of.rows, of.along)) * max(LEAST_IN, widest + ROOM_IN),
    )


def panel(of: WinnerMap) -> Panel:
    """Return the map; its cells are as high as the fullest one."""
    axis, most_lines = of.axis, max(len(short(each)) for each in of.cells.values())
    follows = "\n(token length = channels)" if axis is CHANNELS and "token_len" in of.varying else ""
    down = places(of.rows, axis)[::-1]
    text: dict[str, Any] = {"shape": Shape.TEXT, "x": "x", "y": "y", "size": TEXT_SIZE}
    return Panel(
        x=Scale.places(f"{of.along.name} {of.along.symbol}", places(of.rows, of.along)),
        y=Scale.places(f"{axis.name} {axis.symbol}{follows}", down),
        marks=[
            Marks(shape=Shape.CELL, x="x", y="y", fill="name", strength="strength"),
            Marks(text="first", is_bold=True, **text),
            Marks(text="others", **text),
        ],
        height=len(down) * (ROOM_IN + LINE_IN * most_lines),
        rows=[_cell(of, x, y, each) for (x, y), each in of.cells.items()],
    )


def strength(of: Choice) -> float:
    """Return the share of its colour in a cell of a choice: the larger, the surer it is."""
    return PALEST + (STRONGEST - PALEST) * certainty(of)


def _cell(of: WinnerMap, x: int, y: int, choice: Choice) -> dict[str, Any]:
    """Return a cell; the lines below the first leave it its place, and are left theirs."""
    first, *others = short(choice)
    return {
        "x": x,
        "y": y,
        "first": [first, *("" for _ in others)],
        "others": ["", *others],
        "name": choice.name,
        "strength": round(strength(choice), 3),
    }


def _notes(of: WinnerMap) -> Iterator[str]:
    kinds = {each.standing for each in of.cells.values()}
    number = process_count(row for row in of.rows if row["latency_s"] is not None)
    if FASTEST in kinds:
        yield FASTEST_MEANS
    if NAMED in kinds:
        yield f"within: no other is faster by more; bounds are of 99 % over {number}"
    if kinds & {NAMED, ALONE}:
        yield SURENESS
    if len(of.cells) < len(places(of.rows, of.along)) * len(places(of.rows, of.axis)):
        yield "blank: not measured"
    yield from origins(of.rows)
