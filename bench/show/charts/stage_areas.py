"""The picture of the share of each stage against tokens."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

import altair as alt
import numpy as np

from bench.analyse.growth import StageGrowth, stage_growths
from bench.analyse.series import TOKENS, moving
from bench.show.charts.base import (
    TEXT_PX,
    WIDTH_PX,
    Sheet,
    Spec,
    chart,
    inline,
    log,
    own_colour,
    spec,
    text_px,
    ticks,
)
from bench.show.figures import layout
from bench.show.figures.layout import spread
from bench.show.figures.page import calls, facts, origin_rows, tick_labels
from bench.show.palette import QUADRATIC, ink, stage_colour
from bench.show.rows import origins
from bench.store import units
from bench.store.profile import BACKWARD, Profile

HEIGHT_PX, LABEL_PX, LEADER_PX = 400, 20, 22
"""The height of the areas, the least distance of two labels, and the length of what leads to them."""

ROOM_PX = 10
"""The room between two shares that are written."""

HIGHEST = 0.92
"""Shares from here on are written below their mark."""

INK = "#1b1f24"
"""The colour of what lies on the areas, whose own colours are the same in the dark."""

SHARES = (0, 0.25, 0.5, 0.75, 1)


def sheets(profiles: Iterable[Profile]) -> Iterator[tuple[str, Sheet]]:
    """Yield the name and the picture of each series of profiles along the tokens."""
    return ((name(of), sheet(of)) for of in stage_growths(profiles))


def name(of: StageGrowth) -> str:
    """Return the picture in one word: a file name that stays the same whatever else was profiled."""
    first = of.profiles[0].case
    return f"shares-{TOKENS.name}-{first.point.short_name(moving(TOKENS, first.point))}-{first.implementation}".replace(
        ":", "."
    )


def sheet(of: StageGrowth) -> Sheet:
    """Return the picture of a series as a file."""
    point, implementation = of.profiles[0].case.point, of.profiles[0].case.implementation
    return Sheet(
        heading="Share of each stage against tokens",
        facts=[*facts(point, origin_rows(of.profiles), moving(TOKENS, point)), implementation],
        notes=list(_notes(of)),
        spec=stage_areas(of),
        rows=areas(of),
    )


def stacked(of: StageGrowth) -> list[str]:
    """Return the stages from the bottom to the top: the quadratic ones first, then the others."""
    return sorted(of.stages, key=lambda stage: stage not in QUADRATIC)


def areas(of: StageGrowth) -> list[dict[str, Any]]:
    """Return the lower and the upper edge of each stage's area at each place."""
    rows = []
    for number, tokens in enumerate(of.places):
        top = 0.0
        for stage in stacked(of):
            bottom, top = top, top + of.share_of([stage])[number]
            rows.append({"stage": stage, "tokens": tokens, "bottom": bottom, "top": top})
    return rows


def labels(of: StageGrowth) -> list[dict[str, Any]]:
    """Return for each stage its name with its last share, the middle of its area there, and the place of the label."""
    stages = stacked(of)
    last = [of.share_of([stage])[-1] for stage in stages]
    middles = [top - share / 2 for top, share in zip(accumulate(last), last, strict=True)]
    gap = LABEL_PX / HEIGHT_PX
    places = spread(middles, gap, gap / 2, 1 - gap / 2)
    return [
        {"text": f"{stage} {units.percent(share)}", "middle": middle, "place": place, "fill": stage_colour(stage),
            "ink": ink(stage_colour(stage))}
        for stage, share, middle, place in zip(stages, last, middles, places, strict=True)
    ]  # fmt: skip


def quadratic(of: StageGrowth) -> list[dict[str, Any]]:
    """Return the share of the quadratic stages at each place, with its text where there is room for it."""
    shares, last = of.share_of(QUADRATIC), len(of.places) - 1
    texts = [f"{share:.0%}" for share in shares]
    widths = np.array([text_px(text, bold=True) + ROOM_PX for text in texts])
    logs = np.log(of.places)
    across = WIDTH_PX * (logs - logs[0]) / (logs[-1] - logs[0])
    # moved if a text would cross an edge of the axes
    centres = np.clip(across, widths / 2, WIDTH_PX - widths / 2)
    written = layout.spaced(centres.tolist(), widths.tolist(), [last, 0, *range(1, last)])
    return [
        {"tokens": tokens, "share": share, "text": text if number in written else "",
            "align": "left" if number == 0 else "right" if number == last else "center"}
        for number, (tokens, share, text) in enumerate(zip(of.places, shares, texts, strict=True))
    ]  # fmt: skip


def stage_areas(of: StageGrowth) -> Spec:
    """Return the chart of stacked shares, with a line over the quadratic ones, and the stages' names beside it."""
    places, stages = of.places, stacked(of)
    x = alt.X("tokens:Q", title=f"{TOKENS.name} {TOKENS.symbol}", scale=log((places[0], places[-1])),
        axis=ticks(places, tick_labels(places, (places[0], places[-1])), grid=False))  # fmt: skip
    axis = alt.Axis(values=[*SHARES], format=".0%", grid=False)
    scale = alt.Scale(domain=[0, 1])

    def y(column: str) -> alt.Y:
        return alt.Y(f"{column}:Q", title="share of the time in stages", scale=scale, axis=axis, stack=None)

    colours = alt.Scale(domain=stages, range=[stage_colour(stage) for stage in stages])
    filled = chart().mark_area(stroke="var(--surface)", strokeWidth=0.5).encode(
        x=x, y=y("bottom"), y2="top:Q", color=alt.Color("stage:N", scale=colours, legend=None)
    )  # fmt: skip
    half = alt.Chart().mark_rule(strokeDash=[4, 3], color=INK).encode(y=alt.datum(0.5, scale=scale))
    over = inline(quadratic(of))
    line = over.mark_line(strokeWidth=2.4, color=INK, point={"color": INK, "size": 50}).encode(x=x, y=y("share"))
    up = alt.ExprRef(f"datum.share < {HIGHEST} ? -13 : 13")
    style: dict[str, Any] = {"fontSize": TEXT_PX, "fontWeight": "bold", "dy": up, "align": alt.ExprRef("datum.align")}
    halo, words = (
        over.mark_text(**style, **colour).encode(x=x, y=y("share"), text="text:N")
        for colour in ({"color": INK, "stroke": "#ffffff", "strokeWidth": 3}, {"color": INK})
    )
    beside = inline(labels(of))
    end = alt.value({"expr": f"width + {LEADER_PX}"})
    leader = beside.mark_rule(color="var(--quiet)").encode(x=alt.value("width"), x2=end, y=y("middle"), y2="place:Q")
    square = beside.mark_square(size=120, opacity=1, xOffset=6).encode(x=end, y=y("place"), color=own_colour())
    names = beside.mark_text(align="left", dx=18, fontSize=TEXT_PX).encode(
        x=end, y=y("place"), text="text:N", color=own_colour("ink")
    )
    layers = filled, half, line, halo, words, leader, square, names
    return spec("The share of each stage in the time of all, against tokens", *layers, height=HEIGHT_PX)


def _notes(of: StageGrowth) -> Iterator[str]:
    quadratic = [stage for stage in of.stages if stage in QUADRATIC]
    yield f"black line: {', '.join(quadratic[:-1])} and {quadratic[-1]} together, whose work grows with N²"
    if any(stage.direction == BACKWARD for profile in of.profiles for stage in profile.stages):
        yield "forward and backward together"
    yield calls(of.profiles)
    yield from origins(origin_rows(of.profiles))
