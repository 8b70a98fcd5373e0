"""One picture of several maps: what to use for each kind of attention, and how much SDPA brings there.

Kinds differ in their mask, bias, keys or batch. Each has a map over tokens, or keys, and the width of a head; below it,
over the same tokens, stands SDPA's speed-up with its interval, a line for each width.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bench.analyse.axes import CHANNELS, KEYS, TOKENS, places
from bench.analyse.rows import by, grouped
from bench.analyse.standing import Choice
from bench.plan.case import of_role
from bench.plan.columns import Role
from bench.show.charts.quantity import quantity
from bench.show.charts.sheet import Picture, finished, look, sheet
from bench.show.charts.winners import STRONGEST, WinnerMap, draw, maps
from bench.show.palette import light, mix, style
from bench.show.rows import Row, facts, measured, origins, process_count
from bench.show.text import differences, varying
from bench.store.table import baseline_of
from impls.catalogue import DASHED, DOTTED, SOLID, Style

SDPA = "sdpa"

WIDTH, CELL, LINES = 2.75, 0.25, 1.25
"""Lengths in inches: the width of a kind, the height of a cell, and that of the lines."""

DASHES = {"dotted": DOTTED, "solid": SOLID, "dashed": DASHED}
"""The dashes of the widths of heads, from the narrowest on."""


@dataclass(frozen=True)
class Overview:
    """The maps of the kinds of one layer, device, dtype and mode."""

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
        return tuple(getattr(of.point, name) for name in ("layer", "num_heads", *of_role(Role.EXECUTION)))

    baseline = baseline_of(table)
    for kinds in grouped((each for each in maps(table) if each.axis is CHANNELS), setting).values():
        if baseline and len(kinds) > 1:
            yield Overview(tuple(kinds), baseline)


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield the overview of each layer, device, dtype and mode of a table of results."""
    return map(picture, overviews(table))


def picture(of: Overview) -> Picture:
    """Return an overview, first the kinds that differ least from most others."""
    kinds = sorted(of.kinds, key=lambda kind: len(of.own(kind)))
    down = max(len(places(kind.rows, CHANNELS)) for kind in kinds)
    columns = sheet([down * CELL, LINES], width=WIDTH, across=len(kinds), gap=0.4)
    for number, (kind, (cells, lines)) in enumerate(zip(kinds, columns, strict=True)):
        draw(cells, kind, lambda place, choice, kind=kind: _number(kind, place, choice), 6.8)  # type: ignore[misc]
        heads = kind.point.num_heads
        labels = [f"D = {each // heads}" for each in places(kind.rows, CHANNELS)]
        cells.set(xlabel="", title=of.title(kind), yticklabels=labels if not number else ["" for _ in labels])
        _lines(lines, kind, of, is_first=not number)
    shown = dict.fromkeys(choice.name for kind in kinds for choice in kind.cells.values() if choice.name)
    handles = [Line2D([], [], linestyle="none", marker="s", color=mix(light("surface"), style(name).colour, STRONGEST),
        label=name) for name in shown]  # fmt: skip
    columns[-1][0].legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
    widths = sorted({channels // kinds[0].point.num_heads for _, channels in kinds[0].cells})
    return finished(
        columns[0][0],
        f"overview-{kinds[0].point.short_name(of.varying)}",
        "What to use where",
        facts(kinds[0].point, of.rows, of.varying),
        [
            f"number: how many times as fast as {of.baseline}",
            "bold: all others are shown to be slower",
            "the paler, the less sure",
            f"lines: {', '.join(f'D = {each} {dash}' for each, dash in zip(widths, DASHES, strict=False))}",
            f"band: 99 % interval over {process_count(measured(of.rows))}",
            *origins(of.rows),
        ],
    )


def _number(of: WinnerMap, place: tuple[int, int], choice: Choice) -> str:
    """Return the speed-up of what to use at a place, 1 for the baseline."""
    at = (of.along.column, "channels", "implementation")
    rows = (row for row in measured(of.rows) if itemgetter(*at)(row) == (*place, choice.name))
    row = next(rows, None)
    if row is None or row["speedup"] is None:
        return ""
    return f"{row['speedup']:.1f}" if row["speedup"] >= 10 else f"{row['speedup']:.2f}"


def _lines(axes: Axes, of: WinnerMap, whole: Overview, *, is_first: bool) -> None:
    """Draw SDPA's speed-up for each width of a head, on one scale for all kinds, over the columns of the map."""
    speedup, across = quantity("speedup", whole.baseline), places(of.rows, of.along)
    speedup.set_up(axes, [row for row in measured(whole.rows) if row["implementation"] == SDPA])
    own = [row for row in measured(of.rows) if row["implementation"] == SDPA and speedup.drawn(row)]
    dashes = [*DASHES.values(), *[DASHED] * len(of.cells)]
    for rows, dash in zip((by(own, "channels")[each] for each in sorted(by(own, "channels"))), dashes, strict=False):
        ordered = sorted(rows, key=itemgetter(of.along.column))
        xs = [across.index(row[of.along.column]) for row in ordered]
        middles, lows, highs = zip(*filter(None, map(speedup.drawn, ordered)), strict=True)
        axes.plot(xs, middles, **look(Style(style(SDPA).colour, dash, "."), 4.0))
        axes.fill_between(xs, lows, highs, color=(style(SDPA).colour, 0.15), linewidth=0)
    axes.set(xticks=range(len(across)), xticklabels=across, xlabel=of.along.title)
    axes.set_ylabel(f"{SDPA}: times as\nfast as {whole.baseline}" if is_first else "")
    axes.tick_params(labelleft=is_first)
