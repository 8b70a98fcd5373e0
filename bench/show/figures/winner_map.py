"""The map of winners over tokens and heads or channels: a cell for each point, in the colour of what to use there."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.analyse.scaling.series import CHANNELS, HEADS, TOKENS, Axis, Row, gathered, moving, places, point_of
from bench.analyse.standing import ALONE, FASTEST, NAMED, Choice
from bench.plan.case import Point
from bench.show.choice_text import certainty, choice_of, short
from bench.show.figures import page
from bench.show.palette import mix, on, style
from bench.show.point_text import parts
from bench.show.rows import devices, measured, origins, plain, process_count


@dataclass(frozen=True)
class WinnerMap:
    """What to use at each place on tokens and the other axis; `point` is one of the points."""

    axis: Axis
    point: Point
    cells: dict[tuple[int, int], Choice]
    rows: tuple[Row, ...]

    @property
    def varying(self) -> set[str]:
        """The columns of the points that are not fixed in the map."""
        return moving(TOKENS, self.point) | moving(self.axis, self.point)

    @property
    def name(self) -> str:
        """The map in one word: a file name that stays the same whatever else was measured."""
        return f"winners-{TOKENS.name}-{self.axis.name}-{self.point.short_name(self.varying)}"


def maps(table: pd.DataFrame) -> Iterator[WinnerMap]:
    """Yield a map for all points that differ in tokens and heads alone, or in tokens and channels.

    It needs two places on either axis and a point at which something was measured.
    """
    for axis in (HEADS, CHANNELS):
        for group in gathered(plain(table), (TOKENS, axis)):
            if min(len(places(group, TOKENS)), len(places(group, axis))) > 1 and measured(group):
                rows_at: dict[tuple[int, int], list[Row]] = {}
                for row in group:
                    rows_at.setdefault((row[TOKENS.column], row[axis.column]), []).append(row)
                cells = {place: choice_of(rows) for place, rows in rows_at.items()}
                yield WinnerMap(axis, point_of(group[0]), cells, tuple(group))


MOST_WHITE = 0.8
"""The share of white in the colour of a choice that is not sure at all."""

EMPTY = "#f0f0f0"
"""The colour of a cell in which nothing was measured."""

LINE, PADDING, LEAST_WIDTH = 0.16, 0.12, 1.4
"""The height of a line of text, the room around it and the least width of a cell, in inches."""


def figures(table: pd.DataFrame) -> Iterator[page.Drawing]:
    """Yield every map that a table of results has points for."""
    return ((each.name, figure(each)) for each in maps(table))


@page.styled()
def figure(of: WinnerMap) -> Figure:
    """Return the map as a figure."""
    xs, ys = places(of.rows, TOKENS), places(of.rows, of.axis)
    texts, notes = [short(cell) for cell in of.cells.values()], list(_notes(of))
    facts = [*parts(of.point, without=of.varying), *devices(of.rows)]
    around = max(*map(page.text_width, facts), *(page.text_width(note, page.SMALL_SIZE) for note in notes))
    breadth = max(
        page.text_width(text, page.SMALL_SIZE if number else page.TEXT_SIZE, bold=not number)
        for lines in texts
        for number, text in enumerate(lines)
    )
    wide = max(LEAST_WIDTH, 2 * PADDING + breadth, (around + page.EDGE - page.LEFT) / len(xs))
    tall = 2 * PADDING + LINE * max(map(len, texts))
    heading = f"What to use over {TOKENS.name} and {of.axis.name}"
    made = page.new_figure(heading, facts, notes, [tall * len(ys)], across=wide * len(xs), right=page.EDGE)
    axes = made.axes[0]
    _scale(axes, of, xs, ys)
    for (x, y), cell in of.cells.items():
        _draw_cell(axes, xs.index(x), ys.index(y), cell, LINE / tall)
    return made


def _scale(axes: Axes, of: WinnerMap, xs: tuple[int, ...], ys: tuple[int, ...]) -> None:
    axes.set_xlim(-0.5, len(xs) - 0.5)
    axes.set_ylim(-0.5, len(ys) - 0.5)
    axes.set_xticks(range(len(xs)), labels=map(str, xs))
    axes.set_yticks(range(len(ys)), labels=map(str, ys))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_color(page.RULE)
    axes.spines[:].set_visible(True)
    axes.set_xlabel(f"{TOKENS.name} {TOKENS.symbol}")
    follows = "\n(token length = channels)" if of.axis is CHANNELS and "token_len" in of.varying else ""
    axes.set_ylabel(f"{of.axis.name} {of.axis.symbol}{follows}")


def _draw_cell(axes: Axes, column: int, row: int, cell: Choice, line: float) -> None:
    (fill, text_colour), (first, *rest) = _colours(cell), short(cell)
    corner = (column - 0.5, row - 0.5)
    axes.add_patch(Rectangle(corner, 1, 1, facecolor=fill, linewidth=0, gid=f"cell {column} {row}"))
    axes.add_patch(Rectangle(corner, 1, 1, facecolor="none", edgecolor="white", linewidth=2))
    text_options: dict[str, Any] = {"ha": "center", "va": "center_baseline", "color": text_colour}
    top = row + line * len(rest) / 2
    axes.text(column, top, first, size=page.TEXT_SIZE, weight="bold", **text_options)
    for number, text in enumerate(rest, start=1):
        axes.text(column, top - line * number, text, size=page.SMALL_SIZE, **text_options)


def _colours(cell: Choice) -> tuple[str, str]:
    """Return the colour of a cell, as strong as the choice is sure, and that of its text."""
    if not cell.name:
        return EMPTY, page.GREY
    fill = mix(style(cell.name).colour, "#ffffff", MOST_WHITE * (1 - certainty(cell)))
    return fill, on(fill)


def _notes(of: WinnerMap) -> Iterator[str]:
    cells = of.cells.values()
    kinds = {cell.standing for cell in cells}
    number = process_count(row for row in of.rows if row["latency_s"] is not None)
    if FASTEST in kinds:
        yield "fastest: all others are shown to be slower, the next one by so much"
    if NAMED in kinds:
        yield f"within: no other is faster by more; bounds are of 95 % over {number}"
    if kinds & {NAMED, ALONE}:
        yield "the stronger the colour, the surer; that of a compiled one is paler from the start"
    if len(of.cells) < len(places(of.rows, TOKENS)) * len(places(of.rows, of.axis)):
        yield "blank: not measured"
    yield from origins(of.rows)
