"""The map of winners over tokens or keys, and heads or channels: a cell for each point, coloured by what to use."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from operator import itemgetter

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from bench.analyse.axes import CHANNELS, HEADS, KEYS, TOKENS, Axis, gathered, moving, places
from bench.analyse.rows import Row, grouped, point_of
from bench.analyse.standing import ALONE, FASTEST, NAMED, Choice
from bench.plan.case import Point
from bench.show.answer import FASTEST_MEANS, certainty, choice_of, short
from bench.show.charts.sheet import Picture, finished, sheet
from bench.show.palette import light, mix, style
from bench.show.rows import devices, measured, origins, plain, process_count
from bench.show.text import parts

CELL_WIDTH, LINE_HEIGHT, ROOM, LETTER, TEXT_SIZE = 1.15, 0.16, 0.2, 0.075, 8.0
"""The least width of a cell, the height of a line of it, the room around it, and the width and size of a letter."""

PALEST, STRONGEST = 0.1, 0.4
"""The shares of an implementation's colour in a cell: text can be read on both."""

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
    """Return the picture of a map; its cells are as large as the fullest one."""
    lines = [short(each) for each in of.cells.values()]
    wide = max(CELL_WIDTH, ROOM + LETTER * max(len(line) for each in lines for line in each))
    high = ROOM + LINE_HEIGHT * max(map(len, lines))
    across, down = len(places(of.rows, of.along)), len(places(of.rows, of.axis))
    ((axes,),) = sheet([down * high], width=across * wide)
    draw(axes, of, lambda _, choice: "\n".join(short(choice)))
    follows = "\n(token length = channels)" if of.axis is CHANNELS and "token_len" in of.varying else ""
    axes.set_ylabel(f"{of.axis.title}{follows}")
    return finished(
        axes,
        f"winners-{of.along.name}-{of.axis.name}-{of.point.short_name(of.varying)}",
        f"What to use over {of.along.name} and {of.axis.name}",
        [*parts(of.point, without=of.varying), *devices(of.rows)],
        [*_notes(of)],
    )


def draw(axes: Axes, of: WinnerMap, text: Callable[[tuple[int, int], Choice], str], size: float = TEXT_SIZE) -> None:
    """Draw the cells of a map: the colour of what to use, as strong as that is sure, and a text; fastest ones bold."""
    across, down = places(of.rows, of.along), places(of.rows, of.axis)
    colours = np.ones((len(down), len(across), 3))
    for (x, y), choice in of.cells.items():
        place = down.index(y), across.index(x)
        colours[place] = to_rgb(colour(choice))
        axes.text(place[1], place[0], text((x, y), choice), ha="center", va="center", size=size,
            weight="bold" if choice.standing == FASTEST else "normal")  # fmt: skip
    axes.imshow(colours, aspect="auto", origin="lower")
    axes.set(xticks=range(len(across)), xticklabels=across, yticks=range(len(down)), yticklabels=down)
    axes.set_xlabel(of.along.title)
    axes.grid(visible=False)
    axes.tick_params(length=0)


def colour(of: Choice) -> str:
    """Return the colour of a cell of a choice: the surer, the stronger."""
    if not of.name:
        return light("open")
    return mix(light("surface"), style(of.name).colour, PALEST + (STRONGEST - PALEST) * certainty(of))


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
