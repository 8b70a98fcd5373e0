"""The spans of one call as boxes on lanes, few enough for a screen: stages on top, operators below by depth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from bench.show.charts.base import Spec, chart, layered, seconds, spec
from bench.show.operators import CATEGORY_COLOURS, category, short
from bench.show.palette import page_variable, stage_colour
from bench.store import units
from bench.store.profile import STAGE, Span

LEFT_PX, ROW_PX, LEAST_PX = 80, 20, 34
"""The room for the names of lanes, the height of a row, and the least width of a box that has its name in it."""

NARROWEST = 1 / 1200
"""The share of the call below which a span is narrower than a pixel and left out."""

FILLS = 0.5
"""A span with at least this share of its parent's time fills it."""

STAGES = "stages"
"""The name of the lane of the layer's stages."""


@dataclass(frozen=True)
class Box:
    """A drawn span: `left` and `width` are shares of the call, `row` counts from the top.

    `stage` is the stage that the span is or lies in; if there is none, `category` is that of its work.
    """

    name: str
    left: float
    width: float
    row: int
    colour: str
    duration_s: float
    stage: str
    category: str


@dataclass(frozen=True)
class Lane:
    """The rows that belong to one thread or stream."""

    name: str
    row: int
    rows: int


@dataclass(frozen=True)
class Timeline:
    """The boxes and lanes of a call; `left_out` counts the spans that are not drawn."""

    whole_s: float
    boxes: tuple[Box, ...]
    lanes: tuple[Lane, ...]
    left_out: int

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(lane.rows for lane in self.lanes)

    @property
    def legend(self) -> dict[str, str]:
        """The categories of the boxes outside all stages, with their colours."""
        present = {box.category for box in self.boxes}
        return {name: colour for name, colour in CATEGORY_COLOURS.items() if name in present}


def timeline(spans: Sequence[Span], most: int) -> Timeline:
    """Return the timeline of a call with its stages and at most `most` other spans, the longest."""
    whole_s = max((span.start_s + span.duration_s for span in spans), default=0.0)
    stages = [span for span in spans if span.kind == STAGE and whole_s]
    others = [span for span in spans if span.kind != STAGE]
    wide = (span for span in others if span.duration_s > NARROWEST * whole_s)
    longest = sorted(wide, key=lambda span: -span.duration_s)[:most]
    visible = sorted(longest, key=lambda span: (span.lane, span.depth, span.start_s))
    one_lane = len({stage.lane for stage in stages}) == 1
    positions = [
        *((STAGES if one_lane else f"{STAGES}, {span.lane}", 0, span) for span in stages),
        # stages have a lane of their own, so they don't count in the depth of what lies in them
        *((span.lane, max(0, span.depth - sum(_holds(each, span) for each in stages)), span) for span in visible),
    ]
    lanes = _lanes([(lane, depth) for lane, depth, _ in positions])
    first = {lane.name: lane.row for lane in lanes}
    boxes = [_box(span, first[lane] + depth, whole_s, stages, visible) for lane, depth, span in positions]
    return Timeline(whole_s, tuple(boxes), tuple(lanes), len(others) - len(visible))


def _holds(stage: Span, span: Span) -> bool:
    middle_s = span.start_s + span.duration_s / 2
    return stage.lane == span.lane and stage.start_s <= middle_s <= stage.start_s + stage.duration_s


def _lanes(places: Sequence[tuple[str, int]]) -> list[Lane]:
    rows: dict[str, int] = {}
    for lane, depth in places:
        rows[lane] = max(rows.get(lane, 0), depth + 1)
    lanes, row = [], 0
    for lane, count in rows.items():
        lanes.append(Lane(lane, row, count))
        row += count
    return lanes


def _box(span: Span, row: int, whole_s: float, stages: Sequence[Span], visible: Sequence[Span]) -> Box:
    around = span.name if span.kind == STAGE else next((each.name for each in stages if _holds(each, span)), "")
    work = "" if around else category(dominant_child(span, visible).name)
    return Box(
        name=span.name,
        left=span.start_s / whole_s,
        width=span.duration_s / whole_s,
        row=row,
        colour=stage_colour(around) if around else CATEGORY_COLOURS[work],
        duration_s=span.duration_s,
        stage=around,
        category=work,
    )


def dominant_child(span: Span, spans: Sequence[Span]) -> Span:
    """Return the deepest of the spans that lie in this one and fill it, this one itself if none does."""
    end_s = span.start_s + span.duration_s
    inside = [
        other
        for other in spans
        if other.lane == span.lane
        and other.depth > span.depth
        and other.start_s >= span.start_s
        and other.start_s + other.duration_s <= end_s
        and other.duration_s >= FILLS * span.duration_s
    ]
    return max([span, *inside], key=lambda other: other.depth)


def rows(of: Timeline) -> list[dict[str, Any]]:
    """Return the boxes of a timeline as their chart draws them; the first row of a lane has its name."""
    names = {lane.row: lane.name for lane in of.lanes}
    return [
        box_row(
            short(box.name),
            box.left * of.whole_s,
            (box.left + box.width) * of.whole_s,
            f"{box.row:03d}|{names.get(box.row, '')}",
            box.colour,
            [units.seconds(box.duration_s), units.percent(box.width), *({box.stage} - {"", box.name})],
        )
        for box in of.boxes
    ]


def box_row(name: str, start_s: float, end_s: float, row: str, colour: str, words: Sequence[str]) -> dict[str, Any]:
    """Return a box as its chart draws it; a row is its number and its name, and `words` say more of the box."""
    return {
        "name": name,
        "start": float(f"{start_s:.4g}"),
        "end": float(f"{end_s:.4g}"),
        "row": row,
        "fill": page_variable(colour),
        "ink": page_variable(colour, "on"),
        "text": " · ".join([name, *words]),
    }


def boxes(description: str) -> Spec:
    """Return the chart of boxes along the time of a call, with their names where there is room; one may be chosen."""
    base = chart(description)
    scale = alt.Scale(nice=False, zero=True)
    x = alt.X("start:Q", title=None, scale=scale, axis=alt.Axis(labelExpr=seconds("datum.value"), tickCount=5))
    names = alt.Axis(labelExpr="split(datum.value, '|')[1]", labelLimit=LEFT_PX - 8, minExtent=LEFT_PX,
        maxExtent=LEFT_PX, ticks=False, domain=False)  # fmt: skip
    y = alt.Y("row:N", title=None, axis=names, scale=alt.Scale(padding=0))
    is_chosen = "indexof(chosen, datum.id) >= 0"
    drawn = base.mark_rect().encode(
        x=x, x2="end:Q", y=y,
        color=alt.Color("fill:N", scale=None, legend=None),
        stroke=alt.condition(is_chosen, alt.value("var(--ink)"), alt.value("var(--surface)")),
        strokeWidth=alt.condition(is_chosen, alt.value(2), alt.value(1)),
        tooltip=alt.Tooltip("text:N", title="span"),
    )  # fmt: skip
    room = "scale('x', datum.end) - scale('x', datum.start)"
    # a name without room is left out, not only hidden: what reaches beyond the chart would make it narrower
    labels = base.mark_text(
        align="left", dx=5, fontSize=12, limit=alt.ExprRef(f"max(1, {room} - 8)"),
        text=alt.ExprRef(f"{room} < {LEAST_PX} ? '' : datum.name"),
    ).encode(x=x, y=y, color=alt.Color("ink:N", scale=None, legend=None))  # fmt: skip
    return spec(layered(drawn, labels, height=alt.Step(ROW_PX)), description)
