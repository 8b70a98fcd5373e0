"""One picture of several maps: what to use for each kind of attention, and how much SDPA brings there.

Kinds differ in their mask, bias, keys or batch. Each has a map over tokens, or keys, and the width of a head; below it,
over the same tokens, stands SDPA's speed-up with its interval, a line for each width.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from bench.analyse.axes import CHANNELS, KEYS, TOKENS, places
from bench.analyse.rows import grouped
from bench.analyse.standing import FASTEST, Choice
from bench.show.answer import certainty
from bench.show.charts.winners import PALEST, STRONGEST, WinnerMap, maps
from bench.show.figures import page
from bench.show.figures.line_data import Quantity, ends_of_speedups, line_of, speedup
from bench.show.palette import mix, style
from bench.show.rows import Row, measured, origins, process_count
from bench.show.text import differences, varying
from bench.store.table import baseline_of
from impls.catalogue import DASHED, DOTTED, SOLID, compiled_from
from impls.table import SDPA

ACROSS = 3
"""The kinds beside each other."""

WIDTH, CELL, LINES, INNER, ROW_GAP, COLUMN_GAP = 2.75, 0.25, 1.25, 0.07, 0.85, 0.42
"""Lengths in inches: the width of a kind, the height of a cell, that of the lines, and the gaps."""

DASHES = (DOTTED, SOLID, DASHED)
"""The dashes of the widths of heads, from the narrowest on."""

BAND_ALPHA = 0.16


@dataclass(frozen=True)
class Overview:
    """The maps of the kinds of one layer, device, dtype and mode, first those that differ least from most others."""

    kinds: tuple[WinnerMap, ...]
    baseline: str

    @property
    def rows(self) -> list[Row]:
        """The rows of all kinds."""
        return [row for kind in self.kinds for row in kind.rows]

    @property
    def varying(self) -> set[str]:
        """The columns that are not the same in all points."""
        return varying(kind.point for kind in self.kinds).union(*(kind.varying for kind in self.kinds))

    @property
    def name(self) -> str:
        """The picture in one word."""
        return f"overview-{self.kinds[0].point.short_name(self.varying)}"

    def own(self, kind: WinnerMap) -> set[str]:
        """Return the columns in which a kind differs from most others."""
        fixed = self.varying - kind.varying
        usual = {name: Counter(getattr(each.point, name) for each in self.kinds).most_common(1)[0][0] for name in fixed}
        return {name for name in fixed if getattr(kind.point, name) != usual[name]}

    def title(self, kind: WinnerMap) -> str:
        """Return in what a kind differs from most others: `plain` if in nothing."""
        point, own = kind.point, self.own(kind)
        counts = []
        if kind.along is KEYS:
            counts.append("one query" if point.num_tokens == 1 else f"{point.num_tokens} queries")
        elif point.num_kv_tokens is not None:
            counts.append(f"{point.num_kv_tokens} keys")
        others = own - {TOKENS.column, KEYS.column}
        return ", ".join([*counts, *([differences(point, others)] if others else [])]) or "plain"


def overviews(table: pd.DataFrame) -> Iterator[Overview]:
    """Yield the kinds of each layer, device, dtype and mode if there are two or more with a map over channels."""

    def setting(of: WinnerMap) -> tuple[object, ...]:
        point = of.point
        return point.layer, point.device, point.dtype, point.mode, point.num_heads, point.threads, point.allocator

    baseline = baseline_of(table)
    by_setting = grouped((each for each in maps(table) if each.axis is CHANNELS), setting)
    for kinds in by_setting.values():
        if baseline and len(kinds) > 1:
            of = Overview(tuple(kinds), baseline)
            yield replace(of, kinds=tuple(sorted(kinds, key=lambda kind: len(of.own(kind)))))


def figures(table: pd.DataFrame) -> Iterator[page.Drawing]:
    """Yield the overview of each layer, device, dtype and mode of a table of results."""
    return ((each.name, figure(each)) for each in overviews(table))


@page.styled()
def figure(of: Overview) -> Figure:
    """Return an overview as a figure."""
    numbers = [row for row in measured(of.rows) if row["implementation"] == SDPA and row["speedup"] is not None]
    quantity, ends = speedup(of.baseline), ends_of_speedups(numbers)
    widths = [_widths(kind) for kind in of.kinds]
    rows = math.ceil(len(of.kinds) / ACROSS)
    high = max(map(len, widths)) * CELL
    each = high + INNER + LINES
    size = (WIDTH + COLUMN_GAP) * ACROSS - COLUMN_GAP, (each + ROW_GAP) * rows - ROW_GAP
    sheet = Figure(figsize=size, facecolor="white")
    for number, kind in enumerate(of.kinds):
        row, column = divmod(number, ACROSS)
        left, top = column * (WIDTH + COLUMN_GAP) / size[0], 1 - row * (each + ROW_GAP) / size[1]
        above = sheet.add_axes((left, top - high / size[1], WIDTH / size[0], high / size[1]))
        below = sheet.add_axes((left, top - each / size[1], WIDTH / size[0], LINES / size[1]))
        _draw_map(above, kind, of.title(kind), named=column == 0)
        _draw_lines(below, kind, quantity, ends, named=column == 0)
    _write_around(sheet, of, size)
    return sheet


def _widths(of: WinnerMap) -> list[int]:
    """Return the widths of heads of a map, the smallest first."""
    return sorted({channels // of.point.num_heads for _, channels in of.cells})


def _draw_map(axes: Axes, of: WinnerMap, title: str, *, named: bool) -> None:
    """Draw the cells of a map: the colour of what to use, as strong as that is sure, and its speed-up."""
    at, widths = places(of.rows, of.along), _widths(of)
    rows = {(row[of.along.column], row["channels"], row["implementation"]): row for row in measured(of.rows)}
    for (place, channels), choice in of.cells.items():
        x, y = at.index(place), widths.index(channels // of.point.num_heads)
        look: dict[str, Any] = {"facecolor": _fill(choice), "hatch": _hatch(choice.name), "edgecolor": "white"}
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, linewidth=1, **look))
        number = _number(rows.get((place, channels, choice.name)))
        weight = "bold" if choice.standing == FASTEST else "normal"
        axes.text(x, y, number, ha="center", va="center", size=6.8, weight=weight)
    axes.set(xlim=(-0.5, len(at) - 0.5), ylim=(-0.5, len(widths) - 0.5))
    axes.set_xticks([])
    axes.set_yticks(
        range(len(widths)), labels=[f"{'D = ' if named else ''}{each}" for each in widths], size=page.SMALL_SIZE
    )
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_title(title, loc="left", size=page.TEXT_SIZE, weight="bold", pad=4)


def _fill(of: Choice) -> str:
    if not of.name:
        return page.RULE
    return mix("#ffffff", style(of.name).colour, (PALEST + (STRONGEST - PALEST) * certainty(of)) / 100)


def _hatch(name: str) -> str | None:
    """Return the hatch of what is compiled, whose colours are too pale to be told from unsure ones."""
    return "////" if compiled_from(name) else None


def _number(row: Row | None) -> str:
    """Return the speed-up of what to use, 1 for the baseline."""
    if row is None or row["speedup"] is None:
        return ""
    return f"{row['speedup']:.1f}" if row["speedup"] >= 10 else f"{row['speedup']:.2f}"


def _draw_lines(axes: Axes, of: WinnerMap, quantity: Quantity, ends: tuple[float, float], *, named: bool) -> None:
    """Draw SDPA's speed-up for each width of a head."""
    at, colour = places(of.rows, of.along), style(SDPA).colour
    own = [row for row in of.rows if row["implementation"] == SDPA]
    by_width = grouped(own, lambda row: row["channels"] // of.point.num_heads)
    axes.axhline(1, color=page.GREY, linewidth=1.0, zorder=2.5)
    for number, width in enumerate(_widths(of)):
        line = line_of(SDPA, "", by_width.get(width, []), at, quantity, of.along)
        axes.fill_between(range(len(at)), line.lows, line.highs, color=colour, alpha=BAND_ALPHA, linewidth=0, zorder=2)
        dash = page.linestyle(DASHES[min(number, len(DASHES) - 1)])
        look: dict[str, Any] = {"color": colour, "linewidth": 1.4, "linestyle": dash, "marker": ".", "markersize": 4}
        axes.plot(range(len(at)), line.values, zorder=3, **look)
    ticks = quantity.ticks(*ends)
    axes.set(yscale="log", xlim=(-0.5, len(at) - 0.5), ylim=ends, xlabel=f"{of.along.name} {of.along.symbol}")
    axes.set_yticks(ticks, labels=[*map(quantity.tick_label, ticks)] if named else [])
    axes.minorticks_off()
    axes.set_xticks(range(len(at)), labels=[*map(str, at)], size=page.SMALL_SIZE)
    axes.tick_params(length=0)
    if named:
        axes.set_ylabel(f"{SDPA}: times as\nfast as {quantity.baseline}")


def _write_around(sheet: Figure, of: Overview, size: tuple[float, float]) -> None:
    """Write the heading and the facts above, and the legend and the notes below."""
    facts = page.facts(of.kinds[0].point, of.rows, of.varying)
    width = size[0] + page.LEFT
    lines = page.wrapped(facts, width)
    left = -page.LEFT / size[0]
    above = 0.42 + page.TITLE_LINE * (len(lines) + 0.4)
    sheet.text(left, 1 + above / size[1], "What to use where", size=page.TITLE_SIZE, weight="bold", va="bottom")
    sheet.text(left, 1 + 0.42 / size[1], "\n".join(lines), color=page.GREY, va="bottom")
    names = [name for name in dict.fromkeys(row["implementation"] for row in of.rows) if _is_named(of, name)]
    fills = [mix("#ffffff", style(name).colour, STRONGEST / 100) for name in names]
    handles: list[Any] = [
        Patch(facecolor=fill, hatch=_hatch(name), edgecolor="white", label=name)
        for name, fill in zip(names, fills, strict=True)
    ]
    sheet.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(left, -0.48 / size[1]), ncols=len(handles), frameon=False,
        borderaxespad=0, fontsize=page.TEXT_SIZE, handlelength=1.2,
    )  # fmt: skip
    narrow = _widths(of.kinds[0])
    dashes = ("dotted", "solid", "dashed")
    notes = [
        f"number: how many times as fast as {of.baseline}",
        "bold: all others are shown to be slower",
        "the paler, the less sure",
        "lines: " + ", ".join(f"D = {each} {dash}" for each, dash in zip(narrow, dashes, strict=False)),
        f"band: 99 % interval over {process_count(measured(of.rows))}",
        *origins(of.rows),
    ]
    text = "\n".join(page.wrapped(notes, width, page.SMALL_SIZE))
    sheet.text(left, -0.82 / size[1], text, size=page.SMALL_SIZE, color=page.GREY, va="top", linespacing=1.6)


def _is_named(of: Overview, name: str) -> bool:
    return any(choice.name == name for kind in of.kinds for choice in kind.cells.values())
