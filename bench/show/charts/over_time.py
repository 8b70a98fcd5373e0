"""Charts over time: samples of a case, bounds during a run, speed-ups from run to run, and the cost of compiling."""

from collections.abc import Sequence

import altair as alt

from bench.show.charts.base import (
    IN_RANGE,
    LINES_PX,
    SHAPES,
    SHOWN,
    SIZE,
    THIN,
    Spec,
    chart,
    colour,
    dash,
    layered,
    seconds,
    shape,
    spec,
)

LEAST_BOUND, BOUNDS = 0.001, [step * 10.0**power for power in range(-3, 3) for step in (1, 2, 5)]
"""Where a bound stands that is less than can be drawn, as that of a fastest one, which is 0; ticks of bounds."""

BOUND_LABELS = f"(datum.value > {LEAST_BOUND} ? '' : '≤ ') + format(datum.value*100, '.3~f') + '%'"

MOST_COLOURS = 10
"""The most points that have a colour of their own."""

ROUND_S = [step * 10.0**power for power in range(-8, 3) for step in (1, 3)]
"""Ticks on a long axis of time."""


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
