"""Charts of one call: its spans as boxes on lanes, and its live memory with the largest blocks as bands.

Stages are the uppermost lane, operators stand below by their depth. Each band has a letter.
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from typing import Any

import altair as alt

from bench.analyse.profile import Peak, live_bytes, peak
from bench.analyse.rows import grouped
from bench.show.palette import CATEGORY_COLOURS, category, page_variable, short_name, stage_colour
from bench.store import units
from bench.store.profile import STAGE, Block, Profile, Span

Spec = dict[str, Any]

ROWS = alt.NamedData(name="rows")

LEFT_PX, ROW_PX, LEAST_PX = 80, 20, 34
"""The room for the names of lanes, the height of a row, and the least width of a box that has its name in it."""

LANES: dict[str, Any] = {"minExtent": LEFT_PX, "maxExtent": LEFT_PX, "ticks": False, "domain": False}
"""The options of an axis that takes the room for the names of lanes, so that charts below each other are aligned."""

NARROWEST = 1 / 1200
"""The share of the call below which a span is narrower than a pixel and left out."""

FILLS = 0.5
"""A span with at least this share of its parent's time fills it."""

STAGES = "stages"
"""The name of the lane of the layer's stages."""


MOST_NAMED, LEAST_NAMED = 8, 0.02
"""The largest number of blocks with a band of their own, and the least share of the peak that such a block has."""

COLUMNS = 400
"""Moments within this share of the call look the same."""

HEIGHT_PX, LETTER_PX = 150, 14
"""The height of the chart, and the least one of a band that has its letter in it."""


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
        "start": _short(start_s),
        "end": _short(end_s),
        "row": row,
        "fill": page_variable(colour),
        "ink": page_variable(colour, "on"),
        "text": " · ".join([name, *words]),
    }


def boxes(description: str) -> Spec:
    """Return the chart of boxes along the time of a call, with their names where there is room; one may be chosen."""
    scale = alt.Scale(nice=False, zero=True)
    x = alt.X("start:Q", title=None, scale=scale, axis=alt.Axis(labelExpr=seconds(), tickCount=5))
    names = alt.Axis(labelExpr="split(datum.value, '|')[1]", labelLimit=LEFT_PX - 8, **LANES)
    y = alt.Y("row:N", title=None, axis=names, scale=alt.Scale(padding=0))
    is_chosen = "indexof(chosen, datum.id) >= 0"
    drawn = chart().mark_rect().encode(
        x=x, x2="end:Q", y=y,
        color=own_colour(),
        stroke=alt.condition(is_chosen, alt.value("var(--ink)"), alt.value("var(--surface)")),
        strokeWidth=alt.condition(is_chosen, alt.value(2), alt.value(1)),
        tooltip=alt.Tooltip("text:N", title="span"),
    )  # fmt: skip
    room = "scale('x', datum.end) - scale('x', datum.start)"
    # a name without room is left out, not only hidden: what reaches beyond the chart would make it narrower
    labels = chart().mark_text(
        align="left", dx=5, fontSize=12, limit=alt.ExprRef(f"max(1, {room} - 8)"),
        text=alt.ExprRef(f"{room} < {LEAST_PX} ? '' : datum.name"),
    ).encode(x=x, y=y, color=own_colour("ink"))  # fmt: skip
    return spec(description, drawn, labels, height=alt.Step(ROW_PX))


@dataclass(frozen=True)
class Band:
    """A block in the chart by its letter; `steps` are where it begins, sinks and ends, with the bytes below it."""

    letter: str
    block: Block
    colour: str
    steps: tuple[tuple[float, int], ...]

    @property
    def words(self) -> str:
        """What the block is."""
        stage = f" in {self.block.stage}" if self.block.stage else ""
        return (
            f"{self.letter} {units.size(self.block.bytes)} by {short_name(self.block.operator) or 'no operator'}{stage}"
        )


@dataclass(frozen=True)
class MemoryChart:
    """The memory of a call; `curve` has the bytes of all live blocks from each moment on."""

    peak: Peak
    whole_s: float
    curve: tuple[tuple[float, int], ...]
    bands: tuple[Band, ...]


def memory_chart(profile: Profile, whole_s: float) -> MemoryChart | None:
    """Return the chart of the recorded call, which took `whole_s`; None if nothing was allocated."""
    blocks, top = profile.blocks, peak(profile)
    if top is None:
        return None
    end_s = max([whole_s, *(block.end_s or block.start_s for block in blocks)]) or 1.0
    large = [block for block in blocks if block.bytes >= LEAST_NAMED * top.bytes]
    # among equal ones, those alive at the peak come first
    large.sort(key=lambda block: (-block.bytes, block not in top.blocks))
    largest = sorted(large[:MOST_NAMED], key=lambda block: block.start_s)
    bands = [_band(string.ascii_uppercase[at], each, largest[:at], end_s) for at, each in enumerate(largest)]
    return MemoryChart(top, end_s, tuple(_thinned(live_bytes(blocks), end_s)), tuple(bands))


def memory_rows(of: MemoryChart) -> list[dict[str, Any]]:
    """Return what the chart draws: the curve, the bands with their letters, and the peak."""
    live = [{"kind": "live", "at": _short(at_s), "high": size} for at_s, size in of.curve]
    bands = []
    for band in of.bands:
        place = {"letter": band.letter, "fill": page_variable(band.colour)}
        steps = [{**place, "at": _short(at_s), "low": low, "high": low + band.block.bytes} for at_s, low in band.steps]
        bands += [{**step, "kind": "band", "words": band.words} for step in steps]
        bands.append({**steps[0], "kind": "letter", "end": steps[1]["at"], "ink": page_variable(band.colour, "on")})
    end = {"kind": "live", "at": _short(of.whole_s), "high": of.curve[-1][1]}
    return [*live, end, *bands, {"kind": "peak", "at": _short(of.peak.at_s), "high": of.peak.bytes}]


def memory() -> Spec:
    """Return the chart of the memory of a call: all live blocks, the largest as bands, and the peak."""
    live, bands, letters, top = map(chart, ("live", "band", "letter", "peak"))
    scale = alt.Scale(nice=False, zero=True)
    x = alt.X("at:Q", title=None, scale=scale, axis=alt.Axis(labelExpr=seconds(), tickCount=5, grid=False))
    y = alt.Y("high:Q", title=None, scale=scale, axis=page_ticks(**LANES))
    layers = [
        live.mark_area(interpolate="step-after", color="var(--live)", opacity=1).encode(x=x, y=y, y2=alt.datum(0)),
        bands.mark_area(interpolate="step-after", opacity=1, stroke="var(--surface)").encode(
            x=x, y=y, y2="low:Q", color=own_colour(), detail="letter:N", tooltip=alt.Tooltip("words:N", title="block")
        ),
        live.mark_line(interpolate="step-after", color="var(--ink)", strokeWidth=1.2).encode(x=x, y=y),
        letters.mark_text(
            align="left", baseline="top", dx=5, dy=3, fontWeight="bold",
            opacity=alt.ExprRef(f"scale('y', datum.low) - scale('y', datum.high) < {LETTER_PX} || "
                f"scale('x', datum.end) - scale('x', datum.at) < {LETTER_PX} ? 0 : 1"),
        ).encode(x=x, y=y, text="letter:N", color=own_colour("ink")),
        top.mark_rule(strokeDash=[3, 3], color="var(--ink)").encode(x=x),
        top.mark_text(baseline="bottom", dy=-3, fontWeight=600, align=alt.ExprRef(
            "scale('x', datum.at) < 30 ? 'left' : scale('x', datum.at) > width - 30 ? 'right' : 'center'"
        )).encode(x=x, y=y, text=alt.value("peak")),
    ]  # fmt: skip
    return spec("Live memory over one call", *layers, height=HEIGHT_PX)


def _band(letter: str, block: Block, before: Sequence[Block], whole_s: float) -> Band:
    """Return the band of a block: it lies on the blocks before it and sinks when they are freed."""
    end_s = whole_s if block.end_s is None else block.end_s
    moments = [block.start_s, *sorted({b.end_s for b in before if b.end_s and block.start_s < b.end_s < end_s})]
    below = [sum(each.bytes for each in before if each.end_s is None or each.end_s > moment_s) for moment_s in moments]
    colour = stage_colour(block.stage) if block.stage else CATEGORY_COLOURS[category(block.operator)]
    return Band(letter, block, colour, (*zip(moments, below, strict=True), (end_s, below[-1])))


def _thinned(curve: Sequence[tuple[float, int]], whole_s: float) -> list[tuple[float, int]]:
    """Return the highest and the last moment of each of the chart's columns."""
    columns = grouped(curve, lambda moment: int(COLUMNS * moment[0] / whole_s)).values()
    return [moment for column in columns for moment in dict.fromkeys((max(column, key=itemgetter(1)), column[-1]))]


def _short(value_s: float) -> float:
    return float(f"{value_s:.4g}")


def chart(kind: str = "") -> alt.Chart:
    """Return a chart of the rows, or of those of a kind."""
    whole = alt.Chart(ROWS)
    return whole.transform_filter(f"datum.kind === '{kind}'") if kind else whole


def own_colour(column: str = "fill") -> alt.Color:
    """Return the colours that the rows themselves have in a column."""
    return alt.Color(f"{column}:N", scale=None, legend=None)


def page_ticks(**options: Any) -> alt.Axis:
    """Return an axis whose ticks and labels the page gives."""
    return alt.Axis(values=alt.ExprRef("ys"), labelExpr="labels[indexof(ys, datum.value)]", **options)


def spec(description: str, *layers: alt.Chart, height: Any) -> Spec:
    """Return the specification of charts on top of each other, of the same rows, that are as wide as their place."""
    whole = alt.LayerChart(layer=[*layers], data=ROWS, height=height).to_dict(validate=False)
    whole["params"] = [{"name": name, "value": []} for name in ("chosen", "ys", "labels")]
    whole |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}, "description": description}
    return {key: value for key, value in whole.items() if key not in ("$schema", "config", "usermeta")}


def seconds(value: str = "datum.value") -> str:
    """Return the expression that writes the value of another one, in seconds, with its unit."""
    texts = [f"format({value} / {scale:g}, '.3~f') + ' {name}'" for name, scale in units.TIME_UNITS]
    limits = [scale for _, scale in units.TIME_UNITS[1:]]
    tests = (f"{value} < {limit:g} ? {text} : " for limit, text in zip(limits, texts, strict=False))
    return f"{value} == 0 ? '0' : {''.join(tests)}{texts[-1]}"
