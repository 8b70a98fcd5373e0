"""The map of winners over tokens or keys, and heads or channels: a cell for each point, coloured by what to use."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any, Literal

import altair as alt
import pandas as pd

from bench.analyse.axes import CHANNELS, HEADS, KEYS, TOKENS, Axis, gathered, moving, places
from bench.analyse.rows import Row, grouped, point_of
from bench.analyse.standing import ALONE, FASTEST, NAMED, Choice
from bench.plan.case import Point
from bench.show.answer import FASTEST_MEANS, certainty, choice_of, short, words
from bench.show.charts import base
from bench.show.charts.base import Sheet, Spec
from bench.show.rows import devices, measured, origins, plain, process_count
from bench.show.text import parts

LINE_PX, ROOM_PX, LEAST_PX, ACROSS_PX = 15, 18, 110, 560
"""The height of a line of a cell, the room around it, the least width of a cell, and that of the text around a map."""

PALEST, STRONGEST = 10, 40
"""The shares of an implementation's colour in a cell, in %: text in the page's own colour can be read on both."""

ANY_SHOWN = "test(regexp('(^|,)(' + join(shown, '|') + ')(,|$)'), datum.names)"
"""Whether the legend shows one of the implementations that may be the fastest in a cell."""

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

    @property
    def name(self) -> str:
        """The map in one word: a file name that stays the same whatever else was measured."""
        return f"winners-{self.along.name}-{self.axis.name}-{self.point.short_name(self.varying)}"


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


def sheets(table: pd.DataFrame) -> Iterator[tuple[str, Sheet]]:
    """Yield the name and the picture of every map that a table of results has points for."""
    return ((each.name, sheet(each)) for each in maps(table))


def winners(of: WinnerMap, *, in_file: bool = False) -> Spec:
    """Return the chart of a map; its cells are as high as the fullest one, and in a file as wide as their text needs.

    A page gives them its own width, to which it fits the text by an expression. Its name of the scale holds nowhere
    else.
    """
    axis, most_lines = of.axis, max(len(short(each)) for each in of.cells.values())
    follows = axis is CHANNELS and "token_len" in of.varying
    whole = base.chart().transform_filter(base.IN_RANGE)
    x = alt.X("x:O", title=f"{of.along.name} {of.along.symbol}", axis=alt.Axis(labelAngle=0, orient="bottom"))
    title = [f"{axis.name} {axis.symbol}", *(["(token length = channels)"] if follows else [])]
    y = alt.Y("y:O", title=title, sort="descending", axis=alt.Axis(labelAngle=0))
    cells = whole.mark_rect(stroke="var(--surface)", strokeWidth=2, cursor="pointer").encode(
        x=x,
        y=y,
        color=base.own_colour(),
        opacity=alt.condition(ANY_SHOWN, alt.value(1), alt.value(0.2)),
        tooltip=[alt.Tooltip("label:N", title="point"), alt.Tooltip("words:N", title="what to use")],
    )

    def texts(lines: str, widest_px: float, size: int, weight: Literal["bold", "normal"], dy: str) -> alt.Chart:
        fitting = size if in_file else alt.ExprRef(f"{size} * min(1, (bandwidth('x') - 4) / {widest_px:.0f})")
        drawn = whole.transform_calculate(text=lines).mark_text(
            baseline="middle", fontSize=fitting, fontWeight=weight, lineHeight=LINE_PX, dy=alt.ExprRef(dy)
        )
        encoded: alt.Chart = drawn.encode(x=x, y=y, text="text:N")
        return encoded

    up = f"-{LINE_PX / 2} * (length(datum.lines) - 1)"
    first_px, others_px = _widest_px(of)
    name = texts("datum.lines[0]", first_px, base.TEXT_PX - 1, "bold", up)
    others = texts("slice(datum.lines, 1)", others_px, base.SMALL_PX, "normal", f"{up} + {LINE_PX}")
    height = alt.Step(ROOM_PX + LINE_PX * most_lines)
    return base.spec(f"What to use, over {of.along.name} and {axis.name}", cells, name, others, height=height)


def cells(of: WinnerMap, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the cells of a map as its chart draws them; `names` are implementations, whose colours have numbers."""
    return [
        {
            "x": x,
            "y": y,
            "label": f"{of.along.symbol}={x} {of.axis.symbol}={y}",
            "words": words(each),
            "lines": short(each),
            "names": ",".join(each.names),
            "fill": _fill(each, names),
        }
        for (x, y), each in of.cells.items()
    ]


def sheet(of: WinnerMap) -> Sheet:
    """Return the map as a file."""
    names = list(dict.fromkeys(str(row["implementation"]) for row in of.rows))
    return Sheet(
        heading=f"What to use over {of.along.name} and {of.axis.name}",
        facts=[*parts(of.point, without=of.varying), *devices(of.rows)],
        notes=list(_notes(of)),
        spec=winners(of, in_file=True),
        rows=cells(of, names),
        names=names,
        width={"step": round(max(LEAST_PX, ROOM_PX + max(_widest_px(of))))},
        across=ACROSS_PX,
        parameters={"shown": names},
    )


def _widest_px(of: WinnerMap) -> tuple[float, float]:
    """Return the widths of the longest name in a cell and of the longest other line."""
    texts = [short(each) for each in of.cells.values()]
    first = max(base.text_px(text, base.TEXT_PX, bold=True) for text, *_ in texts)
    return first, max((base.text_px(text, base.SMALL_PX) for _, *rest in texts for text in rest), default=1.0)


def _fill(of: Choice, names: Sequence[str]) -> str:
    """Return the colour of a cell, as strong as the choice is sure."""
    if not of.name:
        return "var(--open)"
    share = round(PALEST + (STRONGEST - PALEST) * certainty(of))
    return f"color-mix(in srgb, {base.variable(names.index(of.name))} {share}%, var(--surface))"


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
