"""The map of winners as a picture: a cell for each point, coloured as its winner, hatched where several tie."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import style as mpl_style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.analyse.series import CHANNELS, TOKENS, places
from bench.plan.case import POINT_COLUMNS
from bench.show import intervals, page, units
from bench.show.frame import FOOT, LEFT
from bench.show.lettering import SMALL_SIZE, TEXT_SIZE, text_width, wrapped
from bench.show.page import EDGE, GREY, INK, NOTE_LINE, RC, RULE
from bench.show.palette import ink, mix, style
from bench.show.winners import Cell, WinnerMap, maps
from bench.show.words import counted, parts

TIE, HATCH, STRIPES = "#fdf6d8", "////", 0.08
"""The colour that is no implementation's, and stripes that say the same once more."""

UNSURE = 0.65
"""So much white is in the colour of what leads without having won: it has no intervals, or no rival."""

MOST_NAMES = 3
"""Lines of names in a cell; the rest is counted."""

LINE, PADDING, LEAST_WIDTH = 0.16, 0.12, 1.4
"""The height of a line of words, the room around them and the least width of a cell, in inches."""


def draw(table: pd.DataFrame, folder: Path) -> list[Path]:
    """Write every map that the table has points for, and return the files, a PNG and an SVG for each."""
    return [path for each in maps(table) for path in page.save(figure(each), each.name, folder)]


def figure(of: WinnerMap) -> Figure:
    """Return the map as a figure."""
    # what stands in the user's matplotlibrc is for the user's own pictures
    with mpl_style.context(RC, after_reset=True):
        return _figure(of)


def words(cell: Cell) -> list[str]:
    """Return what stands in a cell: who leads, and by how much."""
    if not cell.names:
        return [cell.verdict.says]
    if cell.lead is None:
        return [cell.names[0], cell.verdict.says]
    if cell.is_tie:
        return ["tie", f"within {units.ratio(cell.lead.value)}", *_names(cell)]
    return [cell.names[0], intervals.ratio(cell.lead), f"as fast as {cell.other}"]


def _names(cell: Cell) -> list[str]:
    said, rest = list(cell.names[:MOST_NAMES]), len(cell.names) - MOST_NAMES
    return [*said[:-1], f"{said[-1]} +{rest}"] if rest > 0 else said


def _figure(of: WinnerMap) -> Figure:
    xs, ys = places(of.rows, TOKENS), places(of.rows, of.axis)
    texts, facts, notes = [words(cell) for cell in of.cells.values()], _facts(of), list(_notes(of))
    around = max(*(text_width(fact) for fact in facts), *(text_width(note, SMALL_SIZE) for note in notes))
    wide = max(LEAST_WIDTH, 2 * PADDING + max(map(_breadth, texts)), (around + EDGE - LEFT) / len(xs))
    tall = 2 * PADDING + LINE * max(map(len, texts))
    width = LEFT + wide * len(xs) + EDGE
    subtitle, footnotes = wrapped(facts, width - 2 * EDGE), wrapped(notes, width - 2 * EDGE, SMALL_SIZE)
    head, foot = page.head_height(len(subtitle)), FOOT + NOTE_LINE * len(footnotes)
    height = head + tall * len(ys) + foot
    made = Figure(figsize=(width, height), facecolor="white")
    axes = made.add_axes((LEFT / width, foot / height, wide * len(xs) / width, tall * len(ys) / height))
    page.write(made, f"Who wins over {TOKENS.name} and {of.axis.name}", subtitle, footnotes)
    _scale(axes, of, xs, ys)
    for (x, y), cell in of.cells.items():
        _draw_cell(axes, xs.index(x), ys.index(y), cell, LINE / tall)
    return made


def _breadth(lines: list[str]) -> float:
    first, *rest = lines
    return max(text_width(first) * 1.12, *(text_width(line, SMALL_SIZE) for line in rest), 0.0)


def _scale(axes: Axes, of: WinnerMap, xs: tuple[int, ...], ys: tuple[int, ...]) -> None:
    axes.set_xlim(-0.5, len(xs) - 0.5)
    axes.set_ylim(-0.5, len(ys) - 0.5)
    axes.set_xticks(range(len(xs)), labels=map(str, xs))
    axes.set_yticks(range(len(ys)), labels=map(str, ys))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_color(RULE)
    axes.spines[:].set_visible(True)
    axes.set_xlabel(f"{TOKENS.name} {TOKENS.symbol}")
    follows = "\n(token length = channels)" if of.axis is CHANNELS and "token_len" in of.moving else ""
    axes.set_ylabel(f"{of.axis.name} {of.axis.symbol}{follows}")


def _draw_cell(axes: Axes, column: int, row: int, cell: Cell, line: float) -> None:
    fill, (first, *rest) = _fill(cell), words(cell)
    look: dict[str, Any] = {"facecolor": fill, "linewidth": 0, "gid": f"cell {column} {row}"}
    if cell.is_tie:
        look |= {"hatch": HATCH, "edgecolor": mix(TIE, "#000000", STRIPES)}
    corner = (column - 0.5, row - 0.5)
    axes.add_patch(Rectangle(corner, 1, 1, **look))
    axes.add_patch(Rectangle(corner, 1, 1, facecolor="none", edgecolor="white", linewidth=2))
    placed: dict[str, Any] = {"ha": "center", "va": "center_baseline", "color": _ink(cell, fill)}
    top = row + line * len(rest) / 2
    axes.text(column, top, first, size=TEXT_SIZE, weight="bold", **placed)
    for number, text in enumerate(rest, start=1):
        axes.text(column, top - line * number, text, size=SMALL_SIZE, **placed)


def _fill(cell: Cell) -> str:
    if not cell.names:
        return "#ffffff"
    if cell.is_tie:
        return TIE
    own = style(cell.names[0]).colour
    return own if _has_won(cell) else mix(own, "#ffffff", UNSURE)


def _has_won(cell: Cell) -> bool:
    return cell.verdict.says == "winner"


def _ink(cell: Cell, fill: str) -> str:
    if not cell.names:
        return GREY
    return "white" if ink(fill) == fill else INK


def _facts(of: WinnerMap) -> list[str]:
    devices = dict.fromkeys(row["device_name"] for row in of.rows if row["device_name"])
    return [*parts(of.point, [name for name in POINT_COLUMNS if name not in of.moving]), *devices]


def _notes(of: WinnerMap) -> Iterator[str]:
    cells = of.cells.values()
    processes = counted([row["processes"] for row in of.rows if row["latency_s"] is not None], "process", "processes")
    if any(_has_won(cell) for cell in cells):
        yield f"[low, high]: 95 % interval over {processes}"
    if any(cell.is_tie for cell in cells):
        yield "hatched: a tie of the fastest and all whose intervals reach its own; within: how far they are apart"
    if any(cell.names and not cell.is_tie and not _has_won(cell) for cell in cells):
        yield "pale: the fastest without an interval, or the only one measured, so that no winner is shown"
    if len(of.cells) < len(places(of.rows, TOKENS)) * len(places(of.rows, of.axis)):
        yield "blank: not measured"
    yield from dict.fromkeys(f"torch {row['torch_version']}" for row in of.rows if row["torch_version"])
    yield from dict.fromkeys(f"commit {row['commit']}" for row in of.rows if row["commit"])
