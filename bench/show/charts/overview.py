"""One picture of several maps: what to use for each kind of attention, and how much SDPA brings there.

Kinds differ in their mask, bias, keys or batch. Each has a map over tokens, or keys, and the width of a head; below it,
over the same tokens, stands SDPA's speed-up with its interval, a line for each width.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.analyse.axes import CHANNELS, KEYS, TOKENS, places
from bench.analyse.rows import grouped, point_of
from bench.analyse.standing import FASTEST
from bench.plan.case import of_role
from bench.plan.columns import Role
from bench.show.charts.quantity import quantity
from bench.show.charts.winners import STRONGEST, WinnerMap, maps, strength
from bench.show.palette import light, mix, style
from bench.show.picture import Marks, Panel, Picture, Scale, Shape
from bench.show.rows import Row, facts, measured, origins, process_count
from bench.show.text import differences, varying
from bench.store.table import baseline_of
from impls.catalogue import DASHED, DOTTED, SOLID, Style
from impls.table import SDPA

ACROSS = 3
"""The kinds beside each other."""

WIDTH, CELL, LINES, GAP = 2.75, 0.25, 1.25, 0.07
"""Lengths in inches: the width of a kind, the height of a cell, that of the lines, and the gap between."""

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
    speedup = quantity("speedup", of.baseline)
    y = speedup.scale(row for row in measured(of.rows) if row["implementation"] == SDPA)
    named = dict.fromkeys(str(row["implementation"]) for row in of.rows)
    shown = [name for name in named if any(each.name == name for kind in kinds for each in kind.cells.values())]
    legend = {name: Style(mix(light("surface"), style(name).colour, STRONGEST), SOLID, "s") for name in shown}
    widths = ", ".join(f"D = {each} {dash}" for each, dash in zip(_widths(kinds[0]), DASHES, strict=False))
    return Picture(
        name=f"overview-{kinds[0].point.short_name(of.varying)}",
        heading="What to use where",
        facts=facts(kinds[0].point, of.rows, of.varying),
        notes=[
            f"number: how many times as fast as {of.baseline}",
            "bold: all others are shown to be slower",
            "the paler, the less sure",
            f"lines: {widths}",
            f"band: 99 % interval over {process_count(measured(of.rows))}",
            *origins(of.rows),
        ],
        stacks=[
            [
                _map(kind, of.title(kind), is_first=not number % ACROSS),
                _lines(kind, y, of, is_first=not number % ACROSS),
            ]
            for number, kind in enumerate(kinds)
        ],
        legend=legend,
        across=ACROSS,
        width=WIDTH,
        gap=GAP,
    )


def _widths(of: WinnerMap) -> list[int]:
    """Return the widths of heads of a map, the smallest first."""
    return sorted({channels // of.point.num_heads for _, channels in of.cells})


def _map(of: WinnerMap, title: str, *, is_first: bool) -> Panel:
    """Return the cells of a map: the colour of what to use, as strong as that is sure, and its speed-up."""
    down = _widths(of)[::-1]
    rows_of = {(row[of.along.column], row["channels"], row["implementation"]): row for row in measured(of.rows)}
    rows = [
        {"x": place, "y": channels // of.point.num_heads, "name": choice.name, "strength": strength(choice),
            "kind": choice.standing if choice.standing == FASTEST else "other",
            "number": _number(rows_of.get((place, channels, choice.name)))}
        for (place, channels), choice in of.cells.items()
    ]  # fmt: skip
    text: dict[str, Any] = {"shape": Shape.TEXT, "x": "x", "y": "y", "text": "number", "size": 6.8}
    return Panel(
        x=Scale.places("", places(of.rows, of.along)),
        y=Scale.places("", down, [f"{'D = ' if is_first else ''}{each}" for each in down]),
        marks=[
            Marks(shape=Shape.CELL, x="x", y="y", fill="name", strength="strength", width=1.0),
            Marks(kind=FASTEST, is_bold=True, **text),
            Marks(kind="other", **text),
        ],
        height=len(down) * CELL,
        rows=rows,
        title=title,
    )


def _number(row: Row | None) -> str:
    """Return the speed-up of what to use, 1 for the baseline."""
    if row is None or row["speedup"] is None:
        return ""
    return f"{row['speedup']:.1f}" if row["speedup"] >= 10 else f"{row['speedup']:.2f}"


def _lines(of: WinnerMap, y: Scale, whole: Overview, *, is_first: bool) -> Panel:
    """Return SDPA's speed-up for each width of a head."""
    speedup = quantity("speedup", whole.baseline)
    styles = {
        str(width): Style(style(SDPA).colour, dash, ".")
        for width, dash in zip(_widths(of), [*DASHES.values(), *[DASHED] * len(of.cells)], strict=False)
    }
    rows = [
        {**row, **speedup.drawn(row), "width": str(point_of(row).channels // of.point.num_heads)}
        for row in measured(of.rows)
        if row["implementation"] == SDPA
    ]
    own: dict[str, Any] = {"x": of.along.column, "by": "width", "styles": styles}
    title = f"{SDPA}: times as\nfast as {whole.baseline}" if is_first else ""
    return Panel(
        x=Scale.places(f"{of.along.name} {of.along.symbol}", places(of.rows, of.along)),
        y=Scale(title=title, ends=y.ends, ticks=y.ticks, labels=y.labels if is_first else ["" for _ in y.ticks]),
        marks=[
            Marks(shape=Shape.RULE, y=1.0, rows=[{}], colour="quiet", width=1.0),
            Marks(shape=Shape.BAND, y="speedup_low", y2="speedup_high", **own),
            Marks(shape=Shape.LINE, y="speedup", size=4, **own),
        ],
        height=LINES,
        rows=rows,
    )
