"""Charts of one number of each case: against tokens, heads or channels, a row for each point, and how it grows."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from bench.analyse.series import AXES
from bench.show.charts.base import (
    IN_RANGE,
    LABEL_LINE_PX,
    LABEL_LINES,
    LINES_PX,
    SHOWN,
    SIZE,
    THIN,
    Spec,
    chart,
    colour,
    dash,
    layered,
    shape,
    spec,
    wrapped,
)
from bench.show.figures import log_axis
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
            return log_axis.even(0.0, max(1.0, *values))
        low, high = log_axis.padded(min(values), max(values))
        if self.axis.relative:
            return log_axis.ratios(min(low, 1 / log_axis.LEAST_SPAN), max(high, log_axis.LEAST_SPAN))
        return (log_axis.binary if self.metric.unit is Unit.BYTES else log_axis.decimal)(low, high)

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
    lines = {} if is_crowded else wrapped(16)
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
