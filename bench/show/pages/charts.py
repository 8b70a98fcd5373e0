"""The charts of the pages as Vega-Lite specifications, made by Altair. Their data are in the page, under a name.

A chart that has a series draws values against tokens, heads or channels; the others draw a row for each point.
Colours are CSS variables, so that a chart follows the page into the dark and onto paper.
"""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from bench.analyse.scaling.series import AXES, Axis
from bench.show.palette import style
from bench.store.metrics import COLUMNS as METRICS
from impls.catalogue import Style

Spec = dict[str, Any]
"""A specification of Vega-Lite."""

ROWS = "rows"
"""The name of the data that the page gives to a chart."""

NAME, SYMBOL = "@name", "@symbol"
"""What stands for an axis in a chart that is made once for all of them."""

POINTS = "points"
"""The key of the charts that have a row for each point."""

SHAPES = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "D": "diamond",
    "d": "M0,-1.2L0.7,0L0,1.2L-0.7,0Z",
    "P": "cross",
    "X": "M-1,-0.6L-0.6,-1L0,-0.4L0.6,-1L1,-0.6L0.4,0L1,0.6L0.6,1L0,0.4L-0.6,1L-1,0.6L-0.4,0Z",
    "*": "M0,-1.2L0.28,-0.38L1.14,-0.38L0.44,0.14L0.7,0.98L0,0.46L-0.7,0.98L-0.44,0.14L-1.14,-0.38L-0.28,-0.38Z",
    "h": "M0,-1.1L0.96,-0.56L0.96,0.56L0,1.1L-0.96,0.56L-0.96,-0.56Z",
    "H": "M-1.1,0L-0.56,-0.96L0.56,-0.96L1.1,0L0.56,0.96L-0.56,0.96Z",
    "8": "M-0.44,-1.04L0.44,-1.04L1.04,-0.44L1.04,0.44L0.44,1.04L-0.44,1.04L-1.04,0.44L-1.04,-0.44Z",
    "p": "M0,-1.1L1.04,-0.34L0.64,0.9L-0.64,0.9L-1.04,-0.34Z",
}
"""Vega's shape for each marker of matplotlib that the catalogue uses. A path that reaches from -1 to 1 is as wide as a
square of the same size."""

SIZE, BAND, THIN = 70, 0.13, 1.6
"""The area of a mark in square pixels, the opacity of a band, the width of a line."""

LINES_PX, MAP_PX, ROW_PX, CROWDED = 300, 46, 11, 24
"""The height of a chart of lines and of a row of a map; of an implementation at a point, of which this number of points
has room for all; beyond it they share a line."""

LABEL_LINE_PX, LABEL_LINES = 12, 5
"""The height of a line of a row's label, and how many lines of it the row has room for."""

RATIO_LABELS = "format(datum.value, '.3~f') + 'x'"
SECONDS_LABELS = (
    "datum.value < 1e-6 ? format(datum.value*1e9, '.3~f') + ' ns' : datum.value < 1e-3 ? "
    "format(datum.value*1e6, '.3~f') + ' µs' : datum.value < 1 ? format(datum.value*1e3, '.3~f') + ' ms' : "
    "format(datum.value, '.3~f') + ' s'"
)
BYTES_LABELS = (
    "datum.value < 1024 ? datum.value + ' B' : datum.value < 1048576 ? format(datum.value/1024, '.3~f') + ' KiB' : "
    "datum.value < 1073741824 ? format(datum.value/1048576, '.3~f') + ' MiB' : "
    "format(datum.value/1073741824, '.3~f') + ' GiB'"
)
PERCENT_LABELS = "format(datum.value, '.0%')"
PLAIN_LABELS = "format(datum.value, '.3~f')"


LEAST_BOUND, BOUNDS = 0.001, [step * 10.0**power for power in range(-3, 3) for step in (1, 2, 5)]
"""Where a bound stands that is less than can be drawn, as that of a fastest one, which is 0; ticks of bounds."""

BOUND_LABELS = f"(datum.value > {LEAST_BOUND} ? '' : '≤ ') + format(datum.value*100, '.3~f') + '%'"

MOST_COLOURS = 10
"""The most points that have a colour of their own."""

ROUND_S = [step * 10.0**power for power in range(-8, 3) for step in (1, 3)]
"""Ticks on a long axis of time."""


@dataclass(frozen=True)
class Quantity:
    """A number of a case on a chart: its columns, the words on its axis, and how a value is written there.

    `rule` is a value at which a line is drawn, `second` another column whose values are marked beside the first.
    `selects` is true for the chart on which a range of points can be marked.
    """

    name: str
    title: str
    column: str
    low: str = ""
    high: str = ""
    labels: str = PLAIN_LABELS
    log_base: int = 10
    rule: float | None = None
    second: str = ""
    selects: bool = False
    without_baseline: bool = False


def quantities(baseline: str | None) -> list[Quantity]:
    """Return what is drawn of each case, from top to bottom; titles are those of the matplotlib pictures."""
    speedup, latency, memory = (METRICS[name].axis for name in ("speedup", "latency_s", "memory_bytes"))
    over = (speedup.label if speedup else "").format(baseline=baseline or "the baseline")
    return [
        Quantity("speedup", over, "speedup", "speedup_low", "speedup_high", RATIO_LABELS, 2, 1.0, selects=True,
            without_baseline=True),
        Quantity("latency", latency.label if latency else "", "latency_s", "latency_low_s", "latency_high_s",
            SECONDS_LABELS),
        Quantity("memory", memory.label if memory else "", "memory_bytes", labels=BYTES_LABELS, log_base=2,
            second="predicted_bytes"),
        Quantity("roofline", "share of the roofline", "roofline_share", labels=PERCENT_LABELS, rule=1.0),
    ]  # fmt: skip


def unchecked() -> AbstractContextManager[None]:
    """Return a context in which Altair doesn't check every part of a chart, which takes it seconds; a test does."""
    return debug_mode(False)


def of_quantity(of: Quantity, names: Sequence[str], points: int) -> dict[str, Spec]:
    """Return the charts of a quantity: one against each axis, and one with a row for each point."""
    return _for_axes(_against(of, names)) | {POINTS: _by_point(of, names, points)}


def exponents(names: Sequence[str], what: str) -> dict[str, Spec]:
    """Return the charts of local exponents of latency or memory against each axis."""
    return _for_axes(_exponents(names, what))


def _for_axes(spec: Spec) -> dict[str, Spec]:
    """Return a chart against each axis, given one with the placeholders of an axis."""
    text = json.dumps(spec)
    return {axis.name: json.loads(text.replace(NAME, axis.name).replace(SYMBOL, axis.symbol)) for axis in AXES}


def winners(axis: Axis) -> Spec:
    """Return the map of winners over tokens and another axis."""
    description = f"What to use, over tokens and {axis.name}"
    base = _chart(description).transform_filter(IN_RANGE)
    x = alt.X("x:O", title="tokens N", axis=alt.Axis(labelAngle=0, orient="bottom"))
    y = alt.Y("y:O", title=f"{axis.name} {axis.symbol}", sort="descending")
    cells = base.mark_rect(stroke="var(--surface)", strokeWidth=2, cursor="pointer").encode(
        x=x,
        y=y,
        color=alt.Color("fill:N", scale=None, legend=None),
        opacity=alt.condition(ANY_SHOWN, alt.value(1), alt.value(0.2)),
        tooltip=[alt.Tooltip("label:N", title="point"), alt.Tooltip("words:N", title="what to use")],
    )
    texts = base.mark_text(
        baseline="middle",
        fontSize=11,
        lineHeight=13,
        dy=alt.ExprRef("-6.5 * (length(datum.lines) - 1)"),
        limit=alt.ExprRef("bandwidth('x') - 4"),
    ).encode(x=x, y=y, text="lines:N", color=alt.Color("ink:N", scale=None, legend=None))
    return _spec(alt.layer(cells, texts).properties(height=alt.Step(MAP_PX)), description)


def compilation(names: Sequence[str]) -> Spec:
    """Return the chart of the time per call against calls, if the first compilation is shared by all of them."""
    description = "Time per call against calls, the first compilation shared by all of them"
    base = (
        _chart(description)
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
        axis=alt.Axis(labelExpr=SECONDS_LABELS, values=ROUND_S))  # fmt: skip
    lines = base.mark_line(strokeWidth=THIN).encode(
        x=x, y=y, color=_colour(names), strokeDash=_dash(names), tooltip=_tooltip()
    )
    return _spec(lines.add_params(alt.param(name="at", value=0)).properties(height=LINES_PX), description)


def course(labels: Sequence[str], goal: float | None) -> Spec:
    """Return the chart of each point's bound against the time; `labels` name the points, a line is drawn at `goal`."""
    description = "The bound of each point's choice against the seconds of the run"
    base = _chart(description).transform_filter(IN_RANGE)
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
    return _spec(alt.layer(*layers, data=alt.NamedData(name=ROWS)).properties(height=LINES_PX), description)


def _colour_of_points(labels: Sequence[str]) -> alt.Color:
    """Return a colour for each point, with a legend that has as many columns as there is room for."""
    column_px = 30 + 7 * max(map(len, labels))
    legend = alt.Legend(title=None, orient="bottom", labelColor="var(--ink)", labelFontSize=12, labelLimit=column_px,
        columns=alt.ExprRef(f"max(1, floor(width / {column_px}))"), symbolType="circle")  # fmt: skip
    return alt.Color("label:N", scale=alt.Scale(domain=list(labels), scheme="category10"), legend=legend)


def samples() -> Spec:
    """Return the chart of a case's samples: its processes one after the other, and beside them the interval."""
    description = "Every sample of the case, process by process"
    marks = _chart(description)
    x = alt.X("x:Q", title=None, axis=None, scale=alt.Scale(nice=False, padding=8))
    y = alt.Y("value_s:Q", title="seconds per call", scale=alt.Scale(zero=False),
        axis=alt.Axis(labelExpr=SECONDS_LABELS, tickCount=6))  # fmt: skip
    points = (
        marks.transform_filter("datum.kind === 'sample'")
        .mark_point(filled=True, size=26, opacity=0.85)
        .encode(
            x=x,
            y=y,
            color=alt.condition("datum.flagged", alt.value("var(--warning)"), alt.value("var(--series)")),
            shape=alt.Shape(
                "flagged:N", scale=alt.Scale(domain=[False, True], range=["circle", SHAPES["X"]]), legend=None
            ),
            size=alt.condition("datum.flagged", alt.value(90), alt.value(26)),
            tooltip=[
                alt.Tooltip("process:N"),
                alt.Tooltip("round:N"),
                alt.Tooltip("text:N", title="time"),
                alt.Tooltip("remark:N", title="sample"),
            ],
        )
    )
    titles = (
        marks.transform_filter("datum.kind === 'process'")
        .mark_text(align="center", baseline="top", dy=4, color="var(--quiet)")
        .encode(x=x, y=alt.value("height"), text="process:N")
    )
    medians = (
        marks.transform_filter("datum.kind === 'process'")
        .mark_rule(strokeWidth=1.5, color="var(--ink)")
        .encode(x=alt.X("first:Q", title=None, axis=None), x2="last:Q", y="value_s:Q")
    )
    whole = marks.transform_filter("datum.kind === 'interval'")
    interval = whole.mark_rule(strokeWidth=3, color="var(--ink)").encode(x=x, y="low_s:Q", y2="high_s:Q")
    value = whole.mark_point(filled=True, size=90, shape="diamond", color="var(--ink)").encode(
        x=x, y=y, tooltip=[alt.Tooltip("text:N", title="latency")]
    )
    return _spec(alt.layer(points, titles, medians, interval, value).properties(height=260), description)


def changes() -> Spec:
    """Return the chart of a comparison: the change of each row with its interval, worst first."""
    description = "The change of each row with its interval"
    base = _chart(description).transform_filter("indexof(kept, datum.id) >= 0")
    y = alt.Y("label:N", title=None, sort=alt.EncodingSortField("id"), axis=alt.Axis(labelLimit=190, **_wrapped(24)))
    x = alt.X("change:Q", title="NEW's speed-up by BASE's; left of 1 is slower", scale=alt.Scale(type="log", base=2),
        axis=alt.Axis(labelExpr=RATIO_LABELS, tickCount=7))  # fmt: skip
    colour = alt.Color("colour:N", scale=None, legend=None)
    interval = base.mark_rule(strokeWidth=2, cursor="pointer").encode(
        y=y, x="change_low:Q", x2="change_high:Q", color=colour
    )
    value = base.mark_point(filled=True, size=SIZE, cursor="pointer", opacity=1).encode(
        y=y,
        x=x,
        color=colour,
        tooltip=[alt.Tooltip("label:N", title="row"), alt.Tooltip("verdict:N"), alt.Tooltip("text:N", title="change")],
    )
    rule = alt.Chart().mark_rule(strokeDash=[4, 3], color="var(--ink)").encode(x=alt.datum(1))
    chart = alt.layer(rule, interval, value, data=alt.NamedData(name=ROWS)).properties(height=alt.Step(28))
    return _spec(chart.add_params(alt.param(name="kept", value=[])), description)


def history(names: Sequence[str]) -> Spec:
    """Return the chart of a history: the speed-ups at one point from run to run, with steps marked."""
    description = "Speed-ups from run to run"
    base = _chart(description).transform_filter(SHOWN).transform_filter("datum.point === at")
    x = alt.X("label:O", title=None, sort=None,
        axis=alt.Axis(labelAngle=-30, labelLimit=230, labelExpr="split(datum.value, '|')[1]"))  # fmt: skip
    y = alt.Y("speedup:Q", title="speed-up", scale=alt.Scale(type="log", base=2, padding=12),
        axis=alt.Axis(labelExpr=RATIO_LABELS, tickCount=6))  # fmt: skip
    colour = _colour(names)
    rules = base.mark_rule(strokeWidth=THIN).encode(x=x, y="speedup_low:Q", y2="speedup_high:Q", color=colour)
    lines = base.mark_line(strokeWidth=THIN).encode(x=x, y=y, color=colour, strokeDash=_dash(names))
    marks = base.mark_point(filled=True, size=SIZE, opacity=1).encode(
        x=x, y=y, color=colour, shape=_shape(names),
        tooltip=[alt.Tooltip("implementation:N"), alt.Tooltip("run_label:N", title="run"), alt.Tooltip("version:N"),
            alt.Tooltip("speedup_text:N", title="speed-up"), alt.Tooltip("step:N")],
    )  # fmt: skip
    steps = base.mark_text(dy=-16, fontWeight="bold", fontSize=13).encode(x=x, y=y, text="arrow:N", color=colour)
    layered = alt.layer(lines, rules, marks, steps).add_params(alt.param(name="at", value=0))
    return _spec(layered.properties(height=LINES_PX), description)


def variable(number: int) -> str:
    """Return the CSS variable that holds the colour of the implementation with this number."""
    return f"var(--i{number})"


def swatch(name: str) -> dict[str, Any]:
    """Return how an implementation is drawn: the path of its mark or its name, its dashes, and whether it is hollow."""
    of: Style = style(name)
    return {"shape": SHAPES.get(of.marker, "circle"), "dash": [*of.dash], "hollow": of.hollow}


SHOWN = "indexof(shown, datum.implementation) >= 0"
"""Keeps the implementations that the legend shows."""

IN_RANGE = "length(chosen) == 0 || indexof(chosen, datum.point) >= 0"
"""Keeps the points that are marked; all if none is."""

ANY_SHOWN = "test(regexp('(^|,)(' + join(shown, '|') + ')(,|$)'), datum.names)"
"""Whether the legend shows one of the implementations that may be the fastest in a cell."""


def _chart(description: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=ROWS), description=description)


def _spec(chart: alt.LayerChart | alt.FacetChart | alt.Chart, description: str) -> Spec:
    shared = [alt.param(name=name, value=[]) for name in ("shown", "chosen", "xs", "ys")]
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    made: Spec = (
        chart.add_params(*shared)
        .properties(width="container", autosize=fit, description=description)
        .to_dict(validate=False)
    )
    return {key: value for key, value in made.items() if key not in ("$schema", "config", "usermeta")}


def _against(of: Quantity, names: Sequence[str]) -> Spec:
    description = f"{of.title} against {NAME}"
    base = _base(of, description)
    x = _x()
    y = alt.Y(f"{of.column}:Q", title=of.title, scale=_scale(of), axis=_ticks(of))
    colour = _colour(names)
    layers: list[alt.Chart] = []
    if of.low:
        band = base.transform_filter(f"isValid(datum.{of.low})")
        ends = {"y": alt.Y(f"{of.low}:Q"), "y2": f"{of.high}:Q"}
        layers.append(band.mark_area(opacity=BAND).encode(x=x, color=colour, **ends))
        layers.append(band.mark_rule(opacity=0.7).encode(x=x, color=colour, **ends))
    layers.append(base.mark_line(strokeWidth=THIN).encode(x=x, y=y, color=colour, strokeDash=_dash(names)))
    if of.second:
        expected = base.transform_filter(f"isValid(datum.{of.second})")
        layers.append(
            expected.mark_point(shape="stroke", size=190, strokeWidth=2, opacity=0.8).encode(
                x=x, y=alt.Y(f"{of.second}:Q"), color=colour
            )
        )
    marks = base.mark_point(filled=True, size=SIZE, opacity=1, cursor="pointer").encode(
        x=x, y=y, color=colour, shape=_shape(names), tooltip=_tooltip()
    )
    layers.append(marks.add_params(alt.selection_interval(name="brush", encodings=["x"])) if of.selects else marks)
    return _spec(_layered(of, layers, "y"), description)


def _by_point(of: Quantity, names: Sequence[str], points: int) -> Spec:
    description = f"{of.title}, a row for each point"
    base = _base(of, description)
    crowded = points > CROWDED
    wrapped = {} if crowded else _wrapped(16)
    y = alt.Y("label:N", title=None, sort=alt.EncodingSortField("point"), axis=alt.Axis(grid=True, **wrapped))
    x = alt.X(f"{of.column}:Q", title=of.title, scale=_scale(of), axis=_ticks(of, "top"))
    colour = _colour(names)
    apart = {} if crowded else {"yOffset": alt.YOffset("implementation:N", sort=list(names))}
    layers: list[alt.Chart] = []
    if of.low:
        band = base.transform_filter(f"isValid(datum.{of.low})")
        ends = {"x": alt.X(f"{of.low}:Q"), "x2": f"{of.high}:Q"}
        layers.append(band.mark_rule(strokeWidth=THIN, opacity=0.75).encode(y=y, color=colour, **ends, **apart))
    if of.second:
        expected = base.transform_filter(f"isValid(datum.{of.second})")
        layers.append(
            expected.mark_point(shape="stroke", angle=90, size=120, strokeWidth=2, opacity=0.8).encode(
                y=y, x=alt.X(f"{of.second}:Q"), color=colour, **apart
            )
        )
    marks = base.mark_point(filled=True, size=SIZE * 0.7, opacity=1, cursor="pointer").encode(
        y=y, x=x, color=colour, shape=_shape(names), tooltip=_tooltip(), **apart
    )
    layers.append(marks.add_params(alt.selection_interval(name="brush", encodings=["y"])) if of.selects else marks)
    row_px = max(ROW_PX, LABEL_LINES * LABEL_LINE_PX / len(names))
    height = alt.Step(22) if crowded else alt.Step(row_px, **{"for": "offset"})
    return _spec(_layered(of, layers, "x", height), description)


def _wrapped(characters: int) -> dict[str, Any]:
    """Return the properties of an axis whose labels have their words in lines of at most so many characters.

    The middle of the lines stands at the row.
    """
    joined = rf"replace(datum.value, regexp('(.{{1,{characters}}})( +|$)', 'g'), '$1|')"
    lines = rf"split(replace({joined}, regexp('[|]$'), ''), '|')"
    offsets = [
        {"test": f"length({lines}) === {number}", "value": -LABEL_LINE_PX * (number - 1) / 2}
        for number in range(2, LABEL_LINES + 1)
    ]
    return {
        "labelExpr": lines,
        "labelLineHeight": LABEL_LINE_PX,
        "labelOffset": {"condition": offsets, "value": 0},
    }


def _layered(
    of: Quantity, layers: list[alt.Chart], along: str, height: Any = LINES_PX
) -> alt.LayerChart | alt.FacetChart:
    if of.rule is not None:
        rule = alt.Chart().mark_rule(strokeDash=[4, 3], color="var(--ink)")
        at: dict[str, Any] = {along: alt.datum(of.rule)}
        layers = [rule.encode(**at), *layers]
    return alt.layer(*layers, data=alt.NamedData(name=ROWS)).properties(height=height)


def _base(of: Quantity, description: str) -> alt.Chart:
    chart = alt.Chart(description=description).transform_filter(SHOWN)
    chart = chart.transform_filter(f"isValid(datum.{of.column}) && datum.{of.column} > 0")
    if of.without_baseline:
        chart = chart.transform_filter("!datum.is_baseline")
    return chart if of.selects else chart.transform_filter(IN_RANGE)


def _exponents(names: Sequence[str], what: str) -> Spec:
    description = f"Local exponents of {what} against {NAME}"
    base = _chart(description).transform_filter(SHOWN).transform_filter(f"datum.what === '{what}'")
    y = alt.Y("slope:Q", title=f"exponent of {what}", axis=alt.Axis(tickCount=6))
    colour = _colour(names)
    segments = base.mark_rule(strokeWidth=THIN).encode(
        x=_x("start"), x2="end:Q", y=y, color=colour, strokeDash=_dash(names)
    )
    interval = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(opacity=0.7)
        .encode(x=_x("middle"), y="low:Q", y2="high:Q", color=colour)
    )
    exact = what == "memory"  # which has no interval
    marks = base.mark_point(filled=True, size=SIZE * 0.8, opacity=1).encode(
        x=_x("middle"), y=y, color=colour, shape=_shape(names),
        tooltip=[alt.Tooltip("implementation:N"), alt.Tooltip("from_to:N", title="between"),
            alt.Tooltip("text:N", title="exponent")],
    )  # fmt: skip
    return _spec(
        alt.layer(segments, *([] if exact else [interval]), marks).properties(height=LINES_PX * 0.8), description
    )


def _x(column: str = "x") -> alt.X:
    ticks = alt.Axis(values=alt.ExprRef("xs"), labelOverlap="greedy", format=",d")
    return alt.X(
        f"{column}:Q",
        title=f"{NAME} {SYMBOL}",
        scale=alt.Scale(type="log", base=2, nice=False, padding=18),
        axis=ticks,
    )


def _ticks(of: Quantity, orient: str = "") -> alt.Axis:
    """Return the axis of a quantity; the page gives the ticks, which are those of the matplotlib pictures."""
    where: dict[str, Any] = {"orient": orient} if orient else {}
    if of.name == "roofline":
        return alt.Axis(labelExpr=of.labels, tickCount=6, **where)
    return alt.Axis(labelExpr=of.labels, values=alt.ExprRef("ys"), **where)


def _scale(of: Quantity) -> alt.Scale:
    if of.name == "roofline":
        return alt.Scale(zero=True)
    return alt.Scale(type="log", base=of.log_base, nice=False, padding=14)


def _colour(names: Sequence[str]) -> alt.Color:
    colours = [variable(number) for number in range(len(names))]
    return alt.Color("implementation:N", scale=alt.Scale(domain=list(names), range=colours), legend=None)


def _dash(names: Sequence[str]) -> alt.StrokeDash:
    dashes = [[THIN * each for each in style(name).dash] or [1, 0] for name in names]
    return alt.StrokeDash("implementation:N", scale=alt.Scale(domain=list(names), range=dashes), legend=None)


def _shape(names: Sequence[str]) -> alt.Shape:
    shapes = [SHAPES.get(style(name).marker, "circle") for name in names]
    return alt.Shape("implementation:N", scale=alt.Scale(domain=list(names), range=shapes), legend=None)


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("implementation:N"),
        alt.Tooltip("label:N", title="point"),
        alt.Tooltip("speedup_text:N", title="speed-up"),
        alt.Tooltip("latency_text:N", title="latency"),
        alt.Tooltip("memory_text:N", title="peak memory"),
    ]
