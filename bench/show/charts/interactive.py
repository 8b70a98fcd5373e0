"""Charts that only pages have, whose script gives them rows: quantities of cases, their growth, and charts over time.

A quantity is drawn against tokens, heads or channels, and with a row for each point. Over time there are the samples of
a case, speed-ups from run to run, and the cost of compiling.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from bench.analyse.axes import Axis
from bench.show.charts import base
from bench.show.charts.base import Spec
from bench.show.figures import layout
from bench.show.figures.line_data import Quantity

SHOWN = "indexof(shown, datum.implementation) >= 0"
"""Keeps the implementations that the legend shows."""

AT = "datum.point === at"
"""Keeps one point."""

POINTS = "points"
"""The key of the charts that have a row for each point."""

BAND = 0.13
"""The opacity of a band."""

ROW_PX, LINE_PX, CROWDED = 11, 22, 24
"""The height of an implementation at a point, that of a whole point, and the most points that don't share a line."""

SECOND = {"memory_bytes": "predicted_bytes"}
"""Columns whose values are marked beside those of a metric."""

ROUND_S = [step * 10.0**power for power in range(-8, 3) for step in (1, 3)]
"""Ticks on a long axis of time."""


def tooltips(of: Iterable[Quantity]) -> list[alt.Tooltip]:
    """Return what is shown of a case on pointing at it."""
    own = (alt.Tooltip(f"{each.column}_text:N", title=each.heading) for each in of)
    return [alt.Tooltip("implementation:N"), alt.Tooltip("label:N", title="point"), *own]


def columns(of: Quantity) -> list[str]:
    """Return the columns that are drawn: the values, the ends of their intervals, and what is marked beside them."""
    return [name for name in (of.column, of.axis.low, of.axis.high, SECOND.get(of.column, "")) if name]


def ticks(of: Quantity, values: Sequence[float]) -> list[float]:
    """Return where the ticks of an axis around these values stand."""
    if not values:
        return []
    if of.is_share:
        return layout.even(0.0, max(1.0, *values))
    low, high = layout.padded(min(values), max(values))
    if of.axis.relative:
        low, high = min(low, 1 / layout.LEAST_SPAN), max(high, layout.LEAST_SPAN)
    return of.ticks(low, high)


def charts(
    of: Quantity, names: Sequence[str], axes: Sequence[Axis], points: int, tooltip: list[alt.Tooltip]
) -> dict[str, Spec]:
    """Return the charts of a quantity: one against each of the axes, and one with a row for each of the points."""
    label = of.filled(of.axis.label)
    is_crowded = points > CROWDED
    words = {} if is_crowded else base.in_lines(16)
    rows: dict[str, Any] = {
        "y": alt.Y("label:N", title=None, sort=alt.EncodingSortField("point"), axis=alt.Axis(grid=True, **words))
    }
    height = alt.Step(LINE_PX)
    if not is_crowded:
        rows["yOffset"] = alt.YOffset("implementation:N", sort=list(names))
        height = alt.Step(max(ROW_PX, base.LABEL_LINES * base.LABEL_LINE_PX / len(names)), **{"for": "offset"})
    by_point = base.spec(f"{label}, a row for each point", *_layers(of, names, tooltip, rows, "x"), height=height)
    return {
        axis.name: base.spec(f"{label} against {axis.name}", *_layers(of, names, tooltip, {"x": _x(axis)}, "y"))
        for axis in axes
    } | {POINTS: by_point}


def _layers(
    of: Quantity, names: Sequence[str], tooltip: list[alt.Tooltip], place: dict[str, Any], along: str
) -> list[alt.Chart]:
    """Return what is drawn of a quantity, whose values go `along` an axis; lines join them if that goes up."""
    is_line = along == "y"
    cases = base.chart().transform_filter(SHOWN)
    cases = cases.transform_filter(f"isValid(datum.{of.column}) && datum.{of.column} > 0")
    cases = cases.transform_filter("!datum.is_baseline" if of.axis.relative else base.IN_RANGE)
    shared = {**place, "color": base.colour(names)}
    channel: Any = alt.Y if is_line else alt.X
    scale = alt.Scale(zero=True) if of.is_share else alt.Scale(type="log", nice=False, padding=14)
    axis = base.page_ticks() if is_line else base.page_ticks(orient="top")
    values = {along: channel(f"{of.column}:Q", title=of.filled(of.axis.label), scale=scale, axis=axis)}
    layers: list[alt.Chart] = []
    if of.axis.relative or of.is_share:
        rule = alt.Chart().mark_rule(strokeDash=[4, 3], color="var(--ink)")
        layers.append(rule.encode(**{along: alt.datum(1.0)}))
    if of.axis.low:
        band = cases.transform_filter(f"isValid(datum.{of.axis.low})")
        ends = {along: channel(f"{of.axis.low}:Q"), f"{along}2": f"{of.axis.high}:Q"}
        layers += [band.mark_area(opacity=BAND).encode(**shared, **ends)] if is_line else []
        layers.append(band.mark_rule(strokeWidth=base.THIN, opacity=0.7).encode(**shared, **ends))
    if is_line:
        layers.append(cases.mark_line(strokeWidth=base.THIN).encode(**shared, **values, strokeDash=base.dash(names)))
    if second := SECOND.get(of.column):
        strokes = cases.transform_filter(f"isValid(datum.{second})").mark_point(
            shape="stroke", angle=0 if is_line else 90, size=150, strokeWidth=2, opacity=0.8
        )
        layers.append(strokes.encode(**shared, **{along: channel(f"{second}:Q")}))
    marks = cases.mark_point(
        filled=True, size=base.SIZE if is_line else base.SIZE * 0.7, opacity=1, cursor="pointer"
    ).encode(**shared, **values, shape=base.shape(names), tooltip=tooltip)
    if of.axis.relative:  # on its chart a range of points can be marked
        marks = marks.add_params(alt.selection_interval(name="brush", encodings=["x" if is_line else "y"]))
    return [*layers, marks]


def exponents(names: Sequence[str], what: str, axis: Axis) -> Spec:
    """Return the chart of local exponents of latency or memory against an axis."""
    cases = base.chart().transform_filter(SHOWN)
    y = alt.Y("slope:Q", title=f"exponent of {what}", axis=alt.Axis(tickCount=6))
    own = base.colour(names)
    segments = cases.mark_rule(strokeWidth=base.THIN).encode(
        x=_x(axis, "start"), x2="end:Q", y=y, color=own, strokeDash=base.dash(names)
    )
    interval = (
        cases.transform_filter("isValid(datum.low)")
        .mark_rule(opacity=0.7)
        .encode(x=_x(axis, "middle"), y="low:Q", y2="high:Q", color=own)
    )
    marks = cases.mark_point(filled=True, size=base.SIZE * 0.8, opacity=1).encode(
        x=_x(axis, "middle"), y=y, color=own, shape=base.shape(names),
        tooltip=[alt.Tooltip("implementation:N"), alt.Tooltip("from_to:N", title="between"),
            alt.Tooltip("text:N", title="exponent")],
    )  # fmt: skip
    is_exact = what == "memory"  # which has no interval
    layers = [segments, marks] if is_exact else [segments, interval, marks]
    return base.spec(f"Local exponents of {what} against {axis.name}", *layers, height=base.LINES_PX * 0.8)


def compilation(names: Sequence[str], tooltip: list[alt.Tooltip]) -> Spec:
    """Return the chart of the time per call against calls, if the first compilation is shared by all of them."""
    cases = (
        base.chart()
        .transform_filter(AT)
        .transform_filter(SHOWN)
        .transform_filter("isValid(datum.latency_s)")
        .transform_calculate(calls="[1,3,10,30,100,300,1e3,3e3,1e4,3e4,1e5,3e5,1e6]")
        .transform_flatten(["calls"])
        .transform_calculate(per_call="datum.latency_s + (datum.compile_cold_s || 0) / datum.calls")
    )
    powers = alt.Axis(format="~s", values=[10**power for power in range(7)])
    x = alt.X("calls:Q", title="calls", scale=alt.Scale(type="log"), axis=powers)
    y = alt.Y("per_call:Q", title="time per call, compilation included", scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(labelExpr=base.seconds(), values=ROUND_S))  # fmt: skip
    lines = cases.mark_line(strokeWidth=base.THIN).encode(
        x=x, y=y, color=base.colour(names), strokeDash=base.dash(names), tooltip=tooltip
    )
    return base.spec("Time per call against calls, the first compilation shared by all of them", lines)


def samples() -> Spec:
    """Return the chart of a case's samples: its processes one after the other, and beside them the interval."""
    x = alt.X("x:Q", title=None, axis=None, scale=alt.Scale(nice=False, padding=8))
    y = alt.Y("value_s:Q", title="seconds per call", scale=alt.Scale(zero=False),
        axis=alt.Axis(labelExpr=base.seconds(), tickCount=6))  # fmt: skip
    own, process, whole = map(base.chart, ("sample", "process", "interval"))
    marks = own.transform_calculate(
        text=base.seconds("datum.value_s"),
        remark="datum.flagged ? 'disturbed by other processes' : 'undisturbed'",
    ).mark_point(filled=True, opacity=0.85)
    shapes = alt.Scale(domain=[False, True], range=["circle", base.SHAPES["X"]])
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
    layers = points, titles, medians, interval, value
    return base.spec("Every sample of the case, process by process", *layers, height=260)


def _x(axis: Axis, column: str = "x") -> alt.X:
    return alt.X(
        f"{column}:Q",
        title=f"{axis.name} {axis.symbol}",
        scale=alt.Scale(type="log", base=2, nice=False, padding=18),
        axis=alt.Axis(values=alt.ExprRef("xs"), labelOverlap="greedy", format=",d"),
    )
