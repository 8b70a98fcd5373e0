"""The map of winners over tokens and heads or channels: a cell for each point, in the colour of its winner."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.analyse.fastest import NOTHING, Outcome
from bench.analyse.ranking import NOT_DECIDED, TIE, WINNER
from bench.analyse.scaling.series import CHANNELS, HEADS, TOKENS, Axis, Row, gathered, moving, places, point_of
from bench.plan.case import Point
from bench.show.fastest_text import MOST_NAMES, WITHIN, ahead, further, outcome_of
from bench.show.figures import page
from bench.show.palette import ink, mix, style
from bench.show.point_text import parts
from bench.show.rows import devices, measured, origins, plain, process_count


@dataclass(frozen=True)
class WinnerMap:
    """The outcome at each place on tokens and the other axis; `point` is one of the points."""

    axis: Axis
    point: Point
    cells: dict[tuple[int, int], Outcome]
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
                cells = {place: outcome_of(rows) for place, rows in rows_at.items()}
                yield WinnerMap(axis, point_of(group[0]), cells, tuple(group))


TIED, HATCH, STRIPES = "#fdf6d8", "////", 0.08
"""Ties have a colour that no implementation has, and stripes."""

OPEN = "#f0f0f0"
"""The colour of an undecided cell."""

UNSURE = 0.65
"""The share of white in the colour of the fastest if it has no intervals, or no rival."""

PLAIN = {NOTHING: "#ffffff", TIE: TIED, NOT_DECIDED: OPEN}
"""Cells that don't have the colour of an implementation."""

LINE, PADDING, LEAST_WIDTH = 0.16, 0.12, 1.4
"""The height of a line of text, the room around it and the least width of a cell, in inches."""


def figures(table: pd.DataFrame) -> Iterator[page.Drawing]:
    """Yield every map that a table of results has points for."""
    return ((each.name, figure(each)) for each in maps(table))


@page.styled()
def figure(of: WinnerMap) -> Figure:
    """Return the map as a figure."""
    xs, ys = places(of.rows, TOKENS), places(of.rows, of.axis)
    texts, notes = [words(cell) for cell in of.cells.values()], list(_notes(of))
    facts = [*parts(of.point, without=of.varying), *devices(of.rows)]
    around = max(*map(page.text_width, facts), *(page.text_width(note, page.SMALL_SIZE) for note in notes))
    breadth = max(
        page.text_width(text, page.SMALL_SIZE if number else page.TEXT_SIZE, bold=not number)
        for lines in texts
        for number, text in enumerate(lines)
    )
    wide = max(LEAST_WIDTH, 2 * PADDING + breadth, (around + page.EDGE - page.LEFT) / len(xs))
    tall = 2 * PADDING + LINE * max(map(len, texts))
    heading = f"Who wins over {TOKENS.name} and {of.axis.name}"
    made = page.new_figure(heading, facts, notes, [tall * len(ys)], across=wide * len(xs), right=page.EDGE)
    axes = made.axes[0]
    _scale(axes, of, xs, ys)
    for (x, y), cell in of.cells.items():
        _draw_cell(axes, xs.index(x), ys.index(y), cell, LINE / tall)
    return made


def words(cell: Outcome) -> list[str]:
    """Return the text of a cell: the fastest and by how much, or those that may be the fastest."""
    if cell.says == WINNER and cell.relative:
        return [cell.names[0], ahead(cell.relative), f"as fast as {cell.runner_up}"]
    if cell.says == TIE:
        return [TIE, WITHIN, *_names(cell, "")]
    if cell.says == NOT_DECIDED:
        advice = [further(cell.further_processes)] if cell.further_processes else []
        return [NOT_DECIDED, *_names(cell, "or "), *advice]
    return [*cell.names, cell.says]


def _names(cell: Outcome, last: str) -> list[str]:
    """Return a line for each name; if there are many, the last line counts the rest."""
    names = [*cell.names] if len(cell.names) <= MOST_NAMES + 1 else [*cell.names[:MOST_NAMES]]  # never "1 others"
    rest = len(cell.names) - len(names)
    names = [*names, f"{rest} others"] if rest else names
    return [*names[:-1], f"{last}{names[-1]}"]


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


def _draw_cell(axes: Axes, column: int, row: int, cell: Outcome, line: float) -> None:
    (fill, text_colour), (first, *rest) = _colours(cell), words(cell)
    patch_options: dict[str, Any] = {"facecolor": fill, "linewidth": 0, "gid": f"cell {column} {row}"}
    if cell.says == TIE:
        patch_options |= {"hatch": HATCH, "edgecolor": mix(TIED, "#000000", STRIPES)}
    corner = (column - 0.5, row - 0.5)
    axes.add_patch(Rectangle(corner, 1, 1, **patch_options))
    axes.add_patch(Rectangle(corner, 1, 1, facecolor="none", edgecolor="white", linewidth=2))
    text_options: dict[str, Any] = {"ha": "center", "va": "center_baseline", "color": text_colour}
    top = row + line * len(rest) / 2
    axes.text(column, top, first, size=page.TEXT_SIZE, weight="bold", **text_options)
    for number, text in enumerate(rest, start=1):
        axes.text(column, top - line * number, text, size=page.SMALL_SIZE, **text_options)


def _colours(cell: Outcome) -> tuple[str, str]:
    """Return the colour of a cell and that of its text."""
    own = style(cell.names[0]).colour if cell.says not in PLAIN else PLAIN[cell.says]
    fill = own if cell.says in (WINNER, *PLAIN) else mix(own, "#ffffff", UNSURE)
    return fill, page.GREY if cell.says == NOTHING else "white" if ink(fill) == fill else page.INK


def _notes(of: WinnerMap) -> Iterator[str]:
    cells = of.cells.values()
    kinds = {cell.says for cell in cells}
    if WINNER in kinds:
        yield f"[low, high]: 95 % interval over {process_count(row for row in of.rows if row['latency_s'] is not None)}"
    if TIE in kinds:
        yield f"hatched: shown to be {WITHIN} of each other"
    if NOT_DECIDED in kinds:
        yield "grey: not decided; more processes would show a winner or a tie"
    if kinds - {WINNER, *PLAIN}:
        yield "pale: the fastest without an interval, or the only one measured, so that no winner is shown"
    if len(of.cells) < len(places(of.rows, TOKENS)) * len(places(of.rows, of.axis)):
        yield "blank: not measured"
    yield from origins(of.rows)
