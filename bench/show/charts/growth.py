"""The picture of a series: latencies with their fitted curves, and the local exponents."""

import math
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from bench.analyse.axes import KEYS, moving
from bench.analyse.growth import Exponent, Growth, Scaling, scalings
from bench.analyse.rows import by, point_of
from bench.show.charts.lines import HEIGHT, interval
from bench.show.charts.quantity import along, quantity
from bench.show.figures.layout import inside
from bench.show.figures.marks import LABEL_GAP
from bench.show.picture import Kind, Marks, Panel, Picture, Rows, Scale, Shape
from bench.show.rows import facts, is_measured, origins, plain

PANEL, GAP = 1.6, 0.24
"""The height of a panel of exponents, and the gap between panels, in inches."""

CURVE_POINTS = 200

SIDE_STEP = 0.012
"""The step between marks of a place, as a share of the width; smaller if the next place is near."""

MARKER_SIZE = 4.5

REACH, MARGIN = 0.75, 0.15
"""How far an interval may stretch an axis of exponents beyond their values; longer ones are cut off."""

USUAL = (0.0, 1.0, 2.0)
"""Exponents that the axis always holds: constant, linear, quadratic."""

GROWTHS = ("latency", "memory")
"""What grows."""


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield a picture of each series of a table of results."""
    return (picture(each) for each in scalings(row for row in plain(table) if is_measured(row)))


def picture(of: Scaling) -> Picture:
    """Return the picture of a series."""
    point, latency = point_of(of.rows[0]), quantity("latency_s")
    varying = moving(of.axis, point)
    rows = [{**row, **latency.drawn(row)} for row in of.rows]
    x = along(of.axis, rows, varying)
    exponents_of = {what: [row for row in exponent_rows(of) if row["kind"] == what] for what in GROWTHS}
    panels = [_exponents(what, own, x) for what, own in exponents_of.items() if own]
    band, *origin = [*interval(latency, rows, "bars"), *origins(rows)]
    fits = [f"curves: {'a + b·M' if of.axis is KEYS else 'a + b·N + c·N²'} fitted to the latencies"]
    return Picture(
        name=f"scaling-{of.axis.name}-{point.short_name(varying)}",
        heading=f"How latency and memory grow with {of.axis.name}",
        facts=facts(point, rows, varying),
        notes=[
            band,
            "marks of a place stand side by side",
            *(fits if any(growth.fit for growth in of.growths) else []),
            "an exponent is drawn between its two places",
            *origin,
        ],
        stacks=[[_latencies(of, rows, x), *panels]],
        gap=GAP,
    )


def exponent_rows(of: Scaling) -> list[dict[str, Any]]:
    """Return the local exponents of latency and memory, each beside those of the others between its two places."""
    return [
        {
            "kind": what,
            "implementation": growth.implementation,
            "at": each.start ** (1 - share) * each.end**share,
            "slope": each.slope.value,
            "low": each.slope.low if _has_interval(each) else None,
            "high": each.slope.high if _has_interval(each) else None,
        }
        for what in GROWTHS
        for share, growth in _shares(of)
        for each in getattr(growth, what)
    ]


def exponents(what: str, x: Scale, y: Scale, height: float, rows: Rows = ()) -> Panel:
    """Return a panel of exponents: marks with their intervals."""
    own: dict[str, Any] = {"x": "at", "by": "implementation", "opacity": 0.85}
    bars = Marks(shape=Shape.RULE, y="low", y2="high", width=1.0, has_caps=True, **own)
    points = Marks(shape=Shape.POINT, y="slope", size=MARKER_SIZE, **own)
    # the memory of a call is exact
    return Panel(x=x, y=y, marks=[points] if what == "memory" else [bars, points], height=height, rows=rows)


def _shares(of: Scaling) -> Iterator[tuple[float, Growth]]:
    """Yield the implementations with their shares of the way from place to place."""
    number = len(of.growths)
    return (((number_of + 1) / (number + 1), growth) for number_of, growth in enumerate(of.growths))


def _has_interval(of: Exponent) -> bool:
    return of.slope.is_known and of.slope.low < of.slope.high


def _exponents(what: str, rows: Rows, x: Scale) -> Panel:
    slopes = [*USUAL, *(row["slope"] for row in rows)]
    lows, highs = ([row[name] for row in rows if row[name] is not None] for name in ("low", "high"))
    bottom = max(min(slopes) - REACH, min([min(slopes), *lows])) - MARGIN
    top = min(max(slopes) + REACH, max([max(slopes), *highs])) + MARGIN
    ticks = inside(MaxNLocator(6, integer=True).tick_values(bottom, top), bottom, top)
    title = "exponent\nof latency" if what == "latency" else "exponent of\npeak memory"
    y = Scale(title=title, kind=Kind.LINEAR, ends=(bottom, top), ticks=ticks, labels=[f"{tick:g}" for tick in ticks])
    return exponents(what, x, y, PANEL, rows)


def _latencies(of: Scaling, rows: Rows, x: Scale) -> Panel:
    """Return the panel of latencies with their intervals, and of their curves, or straight lines without one."""
    y = quantity("latency_s").scale(rows)
    height = max(HEIGHT, LABEL_GAP * (len(of.growths) + 2))
    curves = [
        {"implementation": growth.implementation, "at": at, "seconds": seconds}
        for growth in of.growths
        for at, seconds in _curve(growth, of)
    ]
    own: dict[str, Any] = {"by": "implementation", "x": "beside", "rows": _side_by_side(rows, of, x), "opacity": 0.85}
    marks = [
        Marks(shape=Shape.LINE, x="at", y="seconds", by="implementation", rows=curves, has_points=False, beside=True),
        Marks(shape=Shape.RULE, y="latency_low_s", y2="latency_high_s", width=1.0, has_caps=True, **own),
        Marks(shape=Shape.POINT, y="latency_s", size=MARKER_SIZE, **own),
    ]
    return Panel(x=x, y=y, marks=marks, height=height)


def _curve(growth: Growth, of: Scaling) -> Iterator[tuple[float, float]]:
    """Yield the points of the fitted curve, or of straight lines from place to place if there is no fit."""
    own = sorted(by(of.rows, "implementation")[growth.implementation], key=itemgetter(of.axis.column))
    xs, ys = ([float(row[name]) for row in own] for name in (of.axis.column, "latency_s"))
    at = np.geomspace(xs[0], xs[-1], CURVE_POINTS)
    seconds = growth.fit.seconds(at) if growth.fit else np.exp(np.interp(np.log(at), np.log(xs), np.log(ys)))
    return zip(at.tolist(), seconds.tolist(), strict=True)


def _side_by_side(rows: Rows, of: Scaling, x: Scale) -> list[dict[str, Any]]:
    """Return the rows with where their marks stand: those of all implementations beside each other around a place."""
    (left, right), names = x.ends or (1, 1), [growth.implementation for growth in of.growths]
    nearest = min(math.log(after / before) for before, after in pairwise(x.ticks))
    step = min(SIDE_STEP * math.log(right / left), 0.8 * nearest / len(names))
    steps = {name: step * (number - (len(names) - 1) / 2) for number, name in enumerate(names)}
    return [{**row, "beside": row[of.axis.column] * math.exp(steps[row["implementation"]])} for row in rows]
