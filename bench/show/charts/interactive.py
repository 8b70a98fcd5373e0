"""Charts that only pages have, whose script gives them rows: quantities of cases, their growth, and charts over time.

A quantity is drawn against tokens, heads or channels, and with a row for each point. Over time there are the samples of
a case, the bounds during a run, speed-ups from run to run, and the cost of compiling.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from bench.analyse.scaling.series import AXES
from bench.show.charts.base import (
    IN_RANGE,
    LABEL_LINE_PX,
    LABEL_LINES,
    LINES_PX,
    SHAPES,
    SHOWN,
    SIZE,
    THIN,
    Spec,
    chart,
    colour,
    dash,
    in_lines,
    layered,
    seconds,
    shape,
    spec,
)
from bench.show.figures import layout
from bench.store import units
from bench.store.metrics import COLUMNS as METRICS
from bench.store.metrics import Axis, Metric, Unit

NAME, SYMBOL = "@name", "@symbol"
"""What stands for an axis in a chart that is made once for all of them."""

POINTS = "points"
"""The key of the charts that have a row for each point."""

BAND = 0.13
"""The opacity of a band."""

ROW_PX, CROWDED = 11, 24
"""The height of an implementation at a point, and the number of points beyond which they share a line."""

SECOND = {"memory_bytes": "predicted_bytes"}
"""Columns whose values are marked beside those of a metric."""


LEAST_BOUND, BOUNDS = 0.001, [step * 10.0**power for power in range(-3, 3) for step in (1, 2, 5)]
"""Where a bound stands that is less than can be drawn, as that of a fastest one, which is 0; ticks of bounds."""

BOUND_LABELS = f"(datum.value > {LEAST_BOUND} ? '' : '≤ ') + format(datum.value*100, '.3~f') + '%'"

MOST_COLOURS = 10
"""The most points that have a colour of their own."""

ROUND_S = [step * 10.0**power for power in range(-8, 3) for step in (1, 3)]
"""Ticks on a long axis of time."""


@dataclass(frozen=True)
class Quantity:
    """A metric that has an axis, with the baseline that it may refer to."""

    metric: Metric
    axis: Axis
    baseline: str | None

    @property
    def name(self) -> str:
        """The kind of its charts."""
        return self.axis.name

    @property
    def column(self) -> str:
        """The column of its values."""
        return self.metric.name

    @property
    def columns(self) -> list[str]:
        """The columns that are drawn: its values, the ends of their intervals, and what is marked beside them."""
        return [name for name in (self.column, self.axis.low, self.axis.high, SECOND.get(self.column, "")) if name]

    @property
    def heading(self) -> str:
        """The heading of its column in tables."""
        return self.metric.heading.text if self.metric.heading else self.axis.title.lower()

    @property
    def is_share(self) -> bool:
        """Whether it is a share, which is drawn from 0 on."""
        return self.metric.unit is Unit.SHARE

    def filled(self, text: str) -> str:
        """Return a text in which the baseline is named."""
        return text.format(baseline=self.baseline or "the baseline")

    def ticks(self, values: Sequence[float]) -> list[float]:
        """Return where the ticks of an axis around these values stand."""
        if not values:
            return []
        if self.is_share:
            return layout.even(0.0, max(1.0, *values))
        low, high = layout.padded(min(values), max(values))
        if self.axis.relative:
            return layout.ratios(min(low, 1 / layout.LEAST_SPAN), max(high, layout.LEAST_SPAN))
        return (layout.binary if self.metric.unit is Unit.BYTES else layout.decimal)(low, high)

    def tick_label(self, value: float) -> str:
        """Return a value as it is written on the axis."""
        return units.formatted(value, self.metric.unit, trim=True)


def quantities(baseline: str | None) -> list[Quantity]:
    """Return every metric that has an axis, ratios to the baseline first, then in the terminal's order."""
    drawn = [Quantity(metric, metric.axis, baseline) for metric in METRICS.values() if metric.axis]
    places = {each.name: each.metric.heading.place if each.metric.heading else math.inf for each in drawn}
    return sorted(drawn, key=lambda each: (not each.axis.relative, places[each.name]))


def tooltips(of: Iterable[Quantity]) -> list[alt.Tooltip]:
    """Return what is told of a case on pointing at it."""
    return [
        alt.Tooltip("implementation:N"),
        alt.Tooltip("label:N", title="point"),
        *(alt.Tooltip(f"{each.column}_text:N", title=each.heading) for each in of),
    ]


def charts(of: Quantity, names: Sequence[str], points: int, tooltip: list[alt.Tooltip]) -> dict[str, Spec]:
    """Return the charts of a quantity: one against each axis, and one with a row for each point."""
    description = f"{of.filled(of.axis.label)} against {NAME}"
    against = spec(layered(*_layers(of, names, tooltip, description, {"x": _x()}, "y")), description)
    description = f"{of.filled(of.axis.label)}, a row for each point"
    is_crowded = points > CROWDED
    lines = {} if is_crowded else in_lines(16)
    rows = {"y": alt.Y("label:N", title=None, sort=alt.EncodingSortField("point"), axis=alt.Axis(grid=True, **lines))}
    offset = {} if is_crowded else {"yOffset": alt.YOffset("implementation:N", sort=list(names))}
    row_px = max(ROW_PX, LABEL_LINES * LABEL_LINE_PX / len(names))
    height = alt.Step(22) if is_crowded else alt.Step(row_px, **{"for": "offset"})
    by_point = layered(*_layers(of, names, tooltip, description, {**rows, **offset}, "x"), height=height)
    return _for_axes(against) | {POINTS: spec(by_point, description)}


def exponents(names: Sequence[str], what: str) -> dict[str, Spec]:
    """Return the charts of local exponents of latency or memory against each axis."""
    description = f"Local exponents of {what} against {NAME}"
    base = chart(description).transform_filter(SHOWN).transform_filter(f"datum.what === '{what}'")
    y = alt.Y("slope:Q", title=f"exponent of {what}", axis=alt.Axis(tickCount=6))
    own = colour(names)
    segments = base.mark_rule(strokeWidth=THIN).encode(
        x=_x("start"), x2="end:Q", y=y, color=own, strokeDash=dash(names)
    )
    interval = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(opacity=0.7)
        .encode(x=_x("middle"), y="low:Q", y2="high:Q", color=own)
    )
    marks = base.mark_point(filled=True, size=SIZE * 0.8, opacity=1).encode(
        x=_x("middle"), y=y, color=own, shape=shape(names),
        tooltip=[alt.Tooltip("implementation:N"), alt.Tooltip("from_to:N", title="between"),
            alt.Tooltip("text:N", title="exponent")],
    )  # fmt: skip
    is_exact = what == "memory"  # which has no interval
    layers = [segments, marks] if is_exact else [segments, interval, marks]
    return _for_axes(spec(layered(*layers, height=LINES_PX * 0.8), description))


def _for_axes(of: Spec) -> dict[str, Spec]:
    """Return a chart against each axis, given one with the placeholders of an axis."""
    text = json.dumps(of)
    return {axis.name: json.loads(text.replace(NAME, axis.name).replace(SYMBOL, axis.symbol)) for axis in AXES}


def _layers(
    of: Quantity,
    names: Sequence[str],
    tooltip: list[alt.Tooltip],
    description: str,
    place: Mapping[str, Any],
    along: Literal["x", "y"],
) -> list[alt.Chart]:
    """Return what is drawn of a quantity, whose values go `along` an axis; lines join them if that goes up."""
    base, is_line = _base(of, description), along == "y"
    shared = {**place, "color": colour(names)}
    channel: Any = alt.Y if is_line else alt.X
    axis = _axis() if is_line else _axis(orient="top")
    values = {along: channel(f"{of.column}:Q", title=of.filled(of.axis.label), scale=_scale(of), axis=axis)}
    layers: list[alt.Chart] = _rule(of, along)
    if of.axis.low:
        band = base.transform_filter(f"isValid(datum.{of.axis.low})")
        ends = {along: channel(f"{of.axis.low}:Q"), f"{along}2": f"{of.axis.high}:Q"}
        layers += [band.mark_area(opacity=BAND).encode(**shared, **ends)] if is_line else []
        layers.append(band.mark_rule(strokeWidth=THIN, opacity=0.7).encode(**shared, **ends))
    if is_line:
        layers.append(base.mark_line(strokeWidth=THIN).encode(**shared, **values, strokeDash=dash(names)))
    if second := SECOND.get(of.column):
        strokes = base.transform_filter(f"isValid(datum.{second})").mark_point(
            shape="stroke", angle=0 if is_line else 90, size=150, strokeWidth=2, opacity=0.8
        )
        layers.append(strokes.encode(**shared, **{along: channel(f"{second}:Q")}))
    marks = base.mark_point(filled=True, size=SIZE if is_line else SIZE * 0.7, opacity=1, cursor="pointer").encode(
        **shared, **values, shape=shape(names), tooltip=tooltip
    )
    if of.axis.relative:  # on its chart a range of points can be marked
        marks = marks.add_params(alt.selection_interval(name="brush", encodings=["x" if is_line else "y"]))
    return [*layers, marks]


def _rule(of: Quantity, along: str) -> list[alt.Chart]:
    """Return the line at 1 of a ratio, and of a share."""
    at: dict[str, Any] = {along: alt.datum(1.0)}
    rule = alt.Chart().mark_rule(strokeDash=[4, 3], color="var(--ink)").encode(**at)
    return [rule] if of.axis.relative or of.is_share else []


def _base(of: Quantity, description: str) -> alt.Chart:
    base = alt.Chart(description=description).transform_filter(SHOWN)
    base = base.transform_filter(f"isValid(datum.{of.column}) && datum.{of.column} > 0")
    return base.transform_filter("!datum.is_baseline" if of.axis.relative else IN_RANGE)


def _x(column: str = "x") -> alt.X:
    return alt.X(
        f"{column}:Q",
        title=f"{NAME} {SYMBOL}",
        scale=alt.Scale(type="log", base=2, nice=False, padding=18),
        axis=alt.Axis(values=alt.ExprRef("xs"), labelOverlap="greedy", format=",d"),
    )


def _axis(**options: Any) -> alt.Axis:
    """Return the axis of a quantity; the page gives its ticks and their labels."""
    return alt.Axis(values=alt.ExprRef("ys"), labelExpr="labels[indexof(ys, datum.value)]", **options)


def _scale(of: Quantity) -> alt.Scale:
    return alt.Scale(zero=True) if of.is_share else alt.Scale(type="log", nice=False, padding=14)


def compilation(names: Sequence[str], tooltip: list[alt.Tooltip]) -> Spec:
    """Return the chart of the time per call against calls, if the first compilation is shared by all of them."""
    description = "Time per call against calls, the first compilation shared by all of them"
    base = (
        chart(description)
        .transform_filter("datum.point === at")
        .transform_filter(SHOWN)
        .transform_filter("isValid(datum.latency_s)")
        .transform_calculate(calls="[1,3,10,30,100,300,1e3,3e3,1e4,3e4,1e5,3e5,1e6]")
        .transform_flatten(["calls"])
        .transform_calculate(per_call="datum.latency_s + (datum.compile_cold_s || 0) / datum.calls")
    )
    x = alt.X(
        "calls:Q",
        title="calls",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format="~s", values=[10**power for power in range(7)]),
    )
    y = alt.Y("per_call:Q", title="time per call, compilation included", scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(labelExpr=seconds("datum.value"), values=ROUND_S))  # fmt: skip
    lines = base.mark_line(strokeWidth=THIN).encode(
        x=x, y=y, color=colour(names), strokeDash=dash(names), tooltip=tooltip
    )
    return spec(lines.add_params(alt.param(name="at", value=0)).properties(height=LINES_PX), description)


def course(labels: Sequence[str], goal: float | None) -> Spec:
    """Return the chart of each point's bound against the time; `labels` name the points, a line is drawn at `goal`."""
    description = "The bound of each point's choice against the seconds of the run"
    base = chart(description).transform_filter(IN_RANGE)
    x = alt.X("end_s:Q", title="seconds of the run", axis=alt.Axis(tickCount=10))
    y = alt.Y("bound:Q", title="what the choice can cost at most", scale=alt.Scale(type="log", nice=False, padding=8),
        axis=alt.Axis(labelExpr=BOUND_LABELS, values=BOUNDS, labelOverlap="greedy", grid=True))  # fmt: skip
    has_colours = len(labels) <= MOST_COLOURS
    opacity = 1.0 if has_colours else 0.5
    colour = _colour_of_points(labels) if has_colours else alt.value("var(--link)")
    lines = base.mark_line(strokeWidth=THIN, interpolate="step-after", opacity=opacity).encode(
        x=x, y=y, color=colour, detail="point:N"
    )
    marks = base.mark_point(filled=True, opacity=opacity).encode(
        x=x, y=y, color=colour, size=alt.condition("datum.answers", alt.value(SIZE), alt.value(SIZE / 5)),
        tooltip=[alt.Tooltip("label:N", title="point"), alt.Tooltip("replicates:Q"), alt.Tooltip("named:N"),
            alt.Tooltip("bound_text:N", title="bound"), alt.Tooltip("left:Q")],
    )  # fmt: skip
    rule = alt.Chart().mark_rule(strokeDash=[4, 3], color="var(--ink)").encode(y=alt.datum(goal))
    layers = [lines, marks] if goal is None else [rule, lines, marks]
    return spec(layered(*layers), description)


def _colour_of_points(labels: Sequence[str]) -> alt.Color:
    """Return a colour for each point, with a legend that has as many columns as there is room for."""
    column_px = 30 + 7 * max(map(len, labels))
    legend = alt.Legend(title=None, orient="bottom", labelColor="var(--ink)", labelFontSize=12, labelLimit=column_px,
        columns=alt.ExprRef(f"max(1, floor(width / {column_px}))"), symbolType="circle")  # fmt: skip
    return alt.Color("label:N", scale=alt.Scale(domain=list(labels), scheme="category10"), legend=legend)


def samples() -> Spec:
    """Return the chart of a case's samples: its processes one after the other, and beside them the interval."""
    description = "Every sample of the case, process by process"
    x = alt.X("x:Q", title=None, axis=None, scale=alt.Scale(nice=False, padding=8))
    y = alt.Y("value_s:Q", title="seconds per call", scale=alt.Scale(zero=False),
        axis=alt.Axis(labelExpr=seconds("datum.value"), tickCount=6))  # fmt: skip
    own, process, whole = (
        chart(description).transform_filter(f"datum.kind === '{kind}'") for kind in ("sample", "process", "interval")
    )
    marks = own.transform_calculate(
        text=seconds("datum.value_s"),
        remark="datum.flagged ? 'disturbed by other processes' : 'undisturbed'",
    ).mark_point(filled=True, opacity=0.85)
    shapes = alt.Scale(domain=[False, True], range=["circle", SHAPES["X"]])
    points = marks.encode(
        x=x, y=y,
        color=alt.condition("datum.flagged", alt.value("var(--warning)"), alt.value("var(--series)")),
        shape=alt.Shape("flagged:N", scale=shapes, legend=None),
        size=alt.condition("datum.flagged", alt.value(90), alt.value(26)),
        tooltip=[alt.Tooltip("process:N"), alt.Tooltip("round:N"), alt.Tooltip("text:N", title="time"),
            alt.Tooltip("remark:N", title="sample")],
    )  # fmt: skip
    titles = process.mark_text(align="center", baseline="top", dy=4, color="var(--quiet)").encode(
        x=x, y=alt.value("height"), text="process:N"
    )
    medians = process.mark_rule(strokeWidth=1.5, color="var(--ink)").encode(
        x=alt.X("first:Q", title=None, axis=None), x2="last:Q", y="value_s:Q"
    )
    interval = whole.mark_rule(strokeWidth=3, color="var(--ink)").encode(x=x, y="low_s:Q", y2="high_s:Q")
    value = whole.mark_point(filled=True, size=90, shape="diamond", color="var(--ink)").encode(
        x=x, y=y, tooltip=[alt.Tooltip("text:N", title="latency")]
    )
    return spec(layered(points, titles, medians, interval, value, height=260), description)


def history(names: Sequence[str]) -> Spec:
    """Return the chart of a history: the speed-ups at one point from run to run, with steps marked."""
    description = "Speed-ups from run to run"
    base = chart(description).transform_filter(SHOWN).transform_filter("datum.point === at")
    x = alt.X("label:O", title=None, sort=None,
        axis=alt.Axis(labelAngle=-30, labelLimit=230, labelExpr="split(datum.value, '|')[1]"))  # fmt: skip
    y = alt.Y("speedup:Q", title="speed-up", scale=alt.Scale(type="log", base=2, padding=12),
        axis=alt.Axis(labelExpr="format(datum.value, '.3~f') + 'x'", tickCount=6))  # fmt: skip
    own = colour(names)
    rules = base.mark_rule(strokeWidth=THIN).encode(x=x, y="speedup_low:Q", y2="speedup_high:Q", color=own)
    lines = base.mark_line(strokeWidth=THIN).encode(x=x, y=y, color=own, strokeDash=dash(names))
    marks = base.mark_point(filled=True, size=SIZE, opacity=1).encode(
        x=x, y=y, color=own, shape=shape(names),
        tooltip=[alt.Tooltip("implementation:N"), alt.Tooltip("run_label:N", title="run"), alt.Tooltip("version:N"),
            alt.Tooltip("speedup_text:N", title="speed-up"), alt.Tooltip("step:N")],
    )  # fmt: skip
    steps = base.mark_text(dy=-16, fontWeight="bold", fontSize=13).encode(x=x, y=y, text="arrow:N", color=own)
    whole = layered(lines, rules, marks, steps)
    return spec(whole.add_params(alt.param(name="at", value=0)), description)
