"""The map of winners over tokens or keys and heads or channels, with a cell for each point in its winner's colour."""

import textwrap
from collections.abc import Iterator, Sequence, Set
from itertools import product
from operator import itemgetter

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from bench.analyse.axes import CHANNELS, HEADS, KEYS, TOKENS, Axis, gathered, moving, places
from bench.analyse.rows import Row, grouped, measured, plain, point_of
from bench.analyse.standing import FASTEST, NAMED, UNDECIDED, Choice, choice
from bench.show.answer import certainty, use, within
from bench.show.charts.sheet import SMALL_SIZE, Picture, finished, sheet
from bench.show.palette import COLOURS, style
from bench.show.rows import devices, origins, process_count
from bench.show.text import parts
from bench.stats.estimates import CONFIDENCE

CELL_WIDTH, LINE_HEIGHT, ROOM, LETTER, LETTERS = 0.9, 0.155, 0.18, 0.075, 18
"""The least width of a cell, the height of a line in it, its margin, the width of a letter, and the most letters in a
line."""

PALEST, STRONGEST = 0.12, 0.4
"""The range of opacity for an implementation's colour in a cell; text is readable on both ends."""


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield a map of all points that differ only in tokens or keys, and in heads or channels.

    It needs two places on each axis and a point with a measurement.
    """
    rows = plain(table)
    for along, axis in product((TOKENS, KEYS), (HEADS, CHANNELS)):
        placed = [row for row in rows if row[along.column] is not None]
        for group in gathered(placed, (along, axis)):
            if min(len(places(group, along)), len(places(group, axis))) > 1 and measured(group):
                yield picture(group, along, axis)


def picture(rows: Sequence[Row], along: Axis, axis: Axis) -> Picture:
    """Return the map of rows over two axes; its cells are as large as the fullest one."""
    rows_at = grouped(rows, itemgetter(along.column, axis.column))
    cells = {place: choice(own) for place, own in rows_at.items()}
    across, down, point = places(rows, along), places(rows, axis), point_of(rows[0])
    varying = moving(along, point) | moving(axis, point)
    lines = [text(of).splitlines() for of in cells.values()]
    wide = max(CELL_WIDTH, ROOM + LETTER * max(len(line) for each in lines for line in each))
    high = ROOM + LINE_HEIGHT * max(map(len, lines))
    axes = sheet(len(down) * high, len(across) * wide)
    for (x, y), of in cells.items():
        _draw(axes, across.index(x), down.index(y), of)
    follows = "\n(token length = channels)" if axis is CHANNELS and "token_len" in varying else ""
    axes.set(xlim=(-0.5, len(across) - 0.5), ylim=(-0.5, len(down) - 0.5), xticks=range(len(across)),
        xticklabels=across, yticks=range(len(down)), yticklabels=down, xlabel=along.title,
        ylabel=f"{axis.title}{follows}")  # fmt: skip
    axes.grid(visible=False)
    axes.tick_params(length=0)
    return finished(
        axes,
        f"winners-{along.name}-{axis.name}-{point.short_name(varying)}",
        f"What to use by {along.name} and {axis.name}",
        [*parts(point, without=varying), *devices(rows)],
        [*_notes(rows, {each.standing for each in cells.values()}), *origins(rows)],
    )


def text(of: Choice) -> str:
    """Return the text of a cell: the implementation to use, and its bound."""
    names = [line for part in use(of).split(": ") for line in textwrap.wrap(part, LETTERS, break_on_hyphens=False)]
    cost = within(of)
    return "\n".join([*names, *([f"within {cost}" if cost.endswith("%") else cost] if cost else [])])


def _draw(axes: Axes, x: int, y: int, of: Choice) -> None:
    """Draw a cell in its winner's colour, stronger for a smaller bound, with a text, bold for the fastest."""
    if of.name and of.standing != UNDECIDED:
        share = PALEST + (STRONGEST - PALEST) * certainty(of)
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, color=style(of.name).colour, alpha=share, linewidth=0))
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=COLOURS["rule"], linewidth=0.6))
    axes.text(x, y, text(of), ha="center", va="center", size=SMALL_SIZE,
        weight="bold" if of.standing == FASTEST else "normal")  # fmt: skip


def _notes(rows: Sequence[Row], standings: Set[str]) -> Iterator[str]:
    if standings & {NAMED, UNDECIDED}:
        yield "within: at most this much slower than the fastest"
    if standings & {FASTEST, NAMED, UNDECIDED}:
        yield f"{CONFIDENCE:.0%} confidence, {process_count(measured(rows))}"
        yield "stronger colour: smaller bound"
