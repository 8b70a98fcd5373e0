"""The spans of one call as boxes on lanes, few enough for a screen: stages on top, operators below by depth."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import altair as alt

from bench.show.charts.base import Spec, chart, layered, seconds, spec
from bench.show.palette import CATEGORY_COLOURS, category, page_variable, short_name, stage_colour
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
class Timeline:
    """What is drawn of a call: the rows of its chart, its lanes from top to bottom, and the spans that are left out.

    `legend` has the categories of the boxes outside all stages, with their colours.
    """

    whole_s: float
    rows: tuple[dict[str, Any], ...]
    lanes: tuple[str, ...]
    legend: dict[str, str]
    left_out: int


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
    depths: dict[str, int] = {}
    for lane, depth, _ in positions:
        depths[lane] = max(depths.get(lane, 0), depth + 1)
    first = dict(zip(depths, accumulate(depths.values(), initial=0), strict=False))
    rows, work = [], set()
    for lane, depth, span in positions:
        stage = span.name if span.kind == STAGE else next((each.name for each in stages if _holds(each, span)), "")
        of_work = category(dominant_child(span, visible).name)
        work |= set() if stage else {of_work}
        colour = stage_colour(stage) if stage else CATEGORY_COLOURS[of_work]
        words = [units.seconds(span.duration_s), units.percent(span.duration_s / whole_s), *({stage} - {"", span.name})]
        # the first row of a lane has its name
        row = f"{first[lane] + depth:03d}|{'' if depth else lane}"
        rows.append(box_row(short_name(span.name), span.start_s, span.start_s + span.duration_s, row, colour, words))
    legend = {name: colour for name, colour in CATEGORY_COLOURS.items() if name in work}
    return Timeline(whole_s, tuple(rows), tuple(depths), legend, len(others) - len(visible))


def _holds(stage: Span, span: Span) -> bool:
    middle_s = span.start_s + span.duration_s / 2
    return stage.lane == span.lane and stage.start_s <= middle_s <= stage.start_s + stage.duration_s


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
