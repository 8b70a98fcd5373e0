"""Pictures of profiles: a bar of stages or operators for each of a point."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from bench.analyse.profile import is_on_gpu, whole_s
from bench.analyse.rows import grouped
from bench.plan.case import Point
from bench.show.charts import base
from bench.show.charts.base import Sheet, Spec
from bench.show.figures import layout
from bench.show.figures.page import calls, facts, origin_rows
from bench.show.palette import CATEGORY_COLOURS, OTHER, RESIDUAL_COLOUR, category, on, stage_colour
from bench.show.rows import origins
from bench.store import units
from bench.store.profile import BACKWARD, Profile, ProfiledOperator

MOST_NAMED, LEAST_NAMED = 6, 0.01
"""The largest number of named operators in a bar, and the least share of an operator that is named."""

LONGEST = 34
"""An operator's name is cut to this number of characters."""

UNSAID = ("aten::", "_scaled_dot_product_")
"""Prefixes of operators' names that carry no meaning."""

WIDTH_PX, TALL_PX, OVERHANG_PX, GAP_PX, TICKS = 760, 46, 7, 20, 7
"""The width of the axes, the height of a bar, how far the mark of the whole reaches above it, and the gap below it; the
number of ticks."""

LINE_PX, SQUARE_PX, PAD_PX = 18, 9, 6
"""Under a bar: the height of a line of names, the side of a name's coloured square, and the room around text."""


@dataclass(frozen=True)
class Segment:
    """A part of a bar; one of the backward pass is hatched."""

    name: str
    time_s: float
    colour: str
    is_backward: bool = False


@dataclass(frozen=True)
class Bar:
    """The time of one case by segments, and the whole: its latency without the profiler, on a GPU all kernels'."""

    implementation: str
    segments: tuple[Segment, ...]
    whole_s: float
    is_on_gpu: bool = False

    @property
    def sum_s(self) -> float:
        """The time of all segments."""
        return sum(segment.time_s for segment in self.segments)

    @property
    def residual_s(self) -> float:
        """The time of the whole beyond its segments; below 0 if the profiler slowed these down."""
        return self.whole_s - self.sum_s


def bars(profiles: Sequence[Profile]) -> list[Bar]:
    """Return a bar for each profile of a point: those in stages first, then the slowest first."""
    ordered = sorted(profiles, key=lambda profile: (not profile.stages, -whole_s(profile)))
    return [
        Bar(
            each.case.implementation,
            _stages(each) if each.stages else _operators(each.operators),
            whole_s(each),
            is_on_gpu(each),
        )
        for each in ordered
    ]


def _stages(profile: Profile) -> tuple[Segment, ...]:
    names = (f"{each.name}{', backward' * (each.direction == BACKWARD)}" for each in profile.stages)
    return tuple(
        Segment(name, each.time_s, stage_colour(each.name), each.direction == BACKWARD)
        for name, each in zip(names, profile.stages, strict=True)
    )


def _operators(operators: Sequence[ProfiledOperator]) -> tuple[Segment, ...]:
    """Return the largest operators in the order of the work they do, and all others with a time as one at the end.

    On a GPU those that launch nothing have none.
    """
    ordered = sorted(operators, key=lambda operator: -operator.time_s)
    least_s = LEAST_NAMED * sum(each.time_s for each in ordered)
    largest = [operator for operator in ordered[:MOST_NAMED] if operator.time_s >= least_s]
    rest = [operator for operator in ordered[len(largest) :] if operator.time_s]
    places = list(CATEGORY_COLOURS)
    largest.sort(key=lambda operator: places.index(category(operator.name)))
    segments = [Segment(short(each.name), each.time_s, CATEGORY_COLOURS[category(each.name)]) for each in largest]
    if rest:
        segments.append(Segment(f"{len(rest)} {OTHER}", sum(each.time_s for each in rest), CATEGORY_COLOURS[OTHER]))
    return tuple(segments)


def short(name: str) -> str:
    """Return an operator's name, short enough for a picture."""
    for beginning in UNSAID:
        name = name.removeprefix(beginning)
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def sheets(profiles: Iterable[Profile]) -> Iterator[tuple[str, Sheet]]:
    """Yield the name and the picture of each point that has profiles."""
    return ((f"stages-{point.name}", sheet(of)) for point, of in by_point(profiles).items())


def by_point(profiles: Iterable[Profile]) -> dict[Point, list[Profile]]:
    """Return the profiles of each point."""
    return grouped(profiles, lambda profile: profile.case.point)


def sheet(profiles: Sequence[Profile]) -> Sheet:
    """Return the picture of the profiles of one point as a file."""
    bars_of_point = bars(profiles)
    rows, height = segments(bars_of_point)
    return Sheet(
        heading="Where the time of a call goes",
        facts=facts(profiles[0].case.point, origin_rows(profiles)),
        notes=list(_notes(profiles, bars_of_point)),
        spec=stage_bars(bars_of_point, height),
        rows=rows,
        width=WIDTH_PX,
        across=WIDTH_PX + 200,
    )


def segments(bars_of_point: Sequence[Bar]) -> tuple[list[dict[str, Any]], float]:
    """Return what is drawn of the bars, and the height of them all in pixels.

    Seconds go to the right and pixels down. A `segment` has its name in it, or none if a `name` stands below the bar,
    in one of several lines; then there is the `residual`, if it is above 0, and the `whole` with its texts.
    """
    rows: list[dict[str, Any]] = []
    top, scale = GAP_PX / 2, WIDTH_PX / _end_s(bars_of_point)
    for bar in bars_of_point:
        place = {"implementation": bar.implementation, "top": top, "bottom": top + TALL_PX}
        start_s = 0.0
        below = []
        for each in bar.segments:
            words = [each.name, units.seconds(each.time_s)]
            wide = max(base.text_px(word, base.SMALL_PX) for word in words) + PAD_PX
            is_crossed = abs(start_s + each.time_s / 2 - bar.whole_s) * scale < wide / 2  # by the mark of the whole
            has_room = wide <= each.time_s * scale and not is_crossed
            below += [] if has_room else [each]
            rows.append({**place, "kind": "segment", "start": start_s, "end": start_s + each.time_s, "name": each.name,
                "text": words if has_room else "", "fill": each.colour, "ink": on(each.colour),
                "backward": each.is_backward})  # fmt: skip
            start_s += each.time_s
        if bar.residual_s > 0:
            rows.append({**place, "kind": "residual", "start": start_s, "end": bar.whole_s, "fill": RESIDUAL_COLOUR})
        share, how = units.percent(bar.residual_s / bar.whole_s), "in kernels" if bar.is_on_gpu else "timed"
        rows.append({**place, "kind": "whole", "top": top - OVERHANG_PX, "start": bar.whole_s,
            "text": f"{units.seconds(bar.whole_s)} {how}", "end": max(start_s, bar.whole_s),
            "residual": f"residual {units.seconds(bar.residual_s)} ({share})"})  # fmt: skip
        lines = _lines(below)
        for number, line in enumerate(lines):
            down = top + TALL_PX + LINE_PX * (number + 0.6)
            rows += [{"kind": "name", "implementation": bar.implementation, "start": across / scale, "top": down,
                "text": _words(each), "fill": each.colour} for across, each in line]  # fmt: skip
        top += TALL_PX + LINE_PX * len(lines) + GAP_PX
    return rows, top


def _end_s(bars_of_point: Sequence[Bar]) -> float:
    return max(max(bar.sum_s, bar.whole_s) for bar in bars_of_point)


def stage_bars(bars_of_point: Sequence[Bar], height: float) -> Spec:
    """Return the chart of the bars: their segments, the residual, and a mark at the latency of the whole."""
    end_s = _end_s(bars_of_point)
    at = layout.even(0, end_s, TICKS)
    axis = base.ticks(at, (units.seconds(tick, trim=True) if tick else "0" for tick in at))
    across, down = alt.Scale(domain=[0, end_s], nice=False), alt.Scale(domain=[height, 0], nice=False)

    def x(column: str = "start") -> alt.X:
        return alt.X(f"{column}:Q", title="time of a call", scale=across, axis=axis)

    def y(column: str = "top") -> alt.Y:
        return alt.Y(f"{column}:Q", axis=None, scale=down)

    def of(kind: str, **calculated: str) -> alt.Chart:
        return base.chart(kind).transform_calculate(middle=f"datum.bottom - {TALL_PX / 2}", **calculated)

    small: dict[str, Any] = {"fontSize": base.SMALL_PX, "baseline": "middle"}
    box = {"x": x(), "x2": "end:Q", "y": y(), "y2": "bottom:Q", "color": base.own_colour()}
    backward, wholes, names = base.chart().transform_filter("datum.backward"), of("whole"), base.chart("name")
    edges = (
        backward.transform_calculate(edge=f"datum.{side} {sign} 4")
        .mark_rule(color="#ffffff", strokeWidth=1.5, strokeDash=[5, 3])
        .encode(x=x(), x2="end:Q", y=y("edge"))
        for side, sign in (("top", "+"), ("bottom", "-"))
    )
    texts = of("segment", center="(datum.start + datum.end) / 2").mark_text(lineHeight=16, dy=-8, **small)
    beside = (
        wholes.mark_text(align="left", dx=10, dy=dy, color=colour, **small).encode(x=x("end"), y=y("middle"), text=text)
        for dy, colour, text in ((-8, "var(--ink)", "text:N"), (8, "var(--quiet)", "residual:N"))
    )
    left: dict[str, Any] = {"align": "right", "dx": -10, "fontSize": base.TEXT_PX, "fontWeight": "bold"}
    squares = names.mark_square(size=SQUARE_PX**2, opacity=1, xOffset=SQUARE_PX / 2)
    layers = [
        of("residual").mark_rect().encode(**box),
        of("segment").mark_rect(stroke="#ffffff", strokeWidth=0.7).encode(**box),
        *edges,
        texts.encode(x=x("center"), y=y("middle"), text="text:N", color=base.own_colour("ink")),
        wholes.mark_rule(strokeWidth=3, color="var(--ink)").encode(x=x(), y=y(), y2="bottom:Q"),
        *beside,
        wholes.mark_text(baseline="middle", **left).encode(x=alt.value(0), y=y("middle"), text="implementation:N"),
        squares.encode(x=x(), y=y(), color=base.own_colour()),
        names.mark_text(align="left", dx=SQUARE_PX + PAD_PX / 2, **small).encode(x=x(), y=y(), text="text:N"),
    ]
    return base.spec("The time of a call by stages or operators, a bar for each implementation", *layers, height=height)


def _notes(profiles: Sequence[Profile], bars_of_point: Sequence[Bar]) -> Iterator[str]:
    on_gpu = any(map(is_on_gpu, profiles))
    whole = "all kernels of the call" if on_gpu else "latency of the whole, timed without the profiler"
    yield f"mark: {whole}; residual: the part of it in no segment"
    if any(segment.is_backward for bar in bars_of_point for segment in bar.segments):
        yield "dashed white lines: backward"
    if any(not profile.stages for profile in profiles):
        yield "an operator has the colour of the stage that does such work"
    yield calls(profiles)
    yield from origins(origin_rows(profiles))


def _words(of: Segment) -> str:
    return f"{of.name} {units.seconds(of.time_s)}"


def _lines(below: Sequence[Segment]) -> list[list[tuple[float, Segment]]]:
    """Return the names under a bar in lines, each with its distance from the left in pixels."""
    lines: list[list[tuple[float, Segment]]] = []
    across = float(WIDTH_PX)
    for each in below:
        long = SQUARE_PX + PAD_PX / 2 + base.text_px(_words(each), base.SMALL_PX)
        if across + long > WIDTH_PX:
            lines.append([])
            across = 0.0
        lines[-1].append((across, each))
        across += long + 2 * PAD_PX
    return lines
