"""The picture of a series: latencies with their fitted curves, and the local exponents."""

from collections.abc import Iterator
from operator import itemgetter

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bench.analyse.axes import KEYS, moving
from bench.analyse.growth import Growth, Scaling, scalings
from bench.analyse.rows import by, point_of
from bench.show.charts.lines import HEIGHT, interval, set_up_along
from bench.show.charts.quantity import quantity
from bench.show.charts.sheet import Picture, finished, look, marks, named_beside, sheet
from bench.show.palette import style
from bench.show.rows import facts, is_measured, origins, plain

PANEL, GAP, SIDE_STEP = 1.6, 0.24, 0.01
"""The height of axes of exponents, the gap between axes, and the step between marks of a place, as a share of it."""

LEAST, MOST = -0.9, 3.1
"""The ends of an axis of exponents: constant, linear, quadratic and some room; longer intervals are cut off."""


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield a picture of each series of a table of results."""
    return (picture(each) for each in scalings(row for row in plain(table) if is_measured(row)))


def picture(of: Scaling) -> Picture:
    """Return the picture of a series."""
    point, latency = point_of(of.rows[0]), quantity("latency_s")
    varying, has_memory = moving(of.axis, point), any(growth.memory for growth in of.growths)
    ((main, *panels),) = sheet([HEIGHT, *[PANEL] * (1 + has_memory)], gap=GAP)
    latency.set_up(main, of.rows)
    for number, growth in enumerate(of.growths):
        _latencies(main, growth, of, 1 + SIDE_STEP * (number - (len(of.growths) - 1) / 2))
        for axes, what in zip(panels, ("latency", "memory"), strict=False):
            _exponents(axes, growth, what, (number + 1) / (len(of.growths) + 1))
    set_up_along(panels[-1], of.axis, of.rows, varying)
    named_beside(main)
    band, *origin = [*interval(latency, of.rows, "bars"), *origins(of.rows)]
    fits = [f"curves: {'a + b·M' if of.axis is KEYS else 'a + b·N + c·N²'} fitted to the latencies"]
    return finished(
        main,
        f"scaling-{of.axis.name}-{point.short_name(varying)}",
        f"How latency and memory grow with {of.axis.name}",
        facts(point, of.rows, varying),
        [
            band,
            "marks of a place stand side by side",
            *(fits if any(growth.fit for growth in of.growths) else []),
            "an exponent is drawn between its two places",
            *origin,
        ],
    )


def _latencies(axes: Axes, growth: Growth, of: Scaling, beside: float) -> None:
    """Draw the latencies of an implementation, and its fitted curve, or lines from place to place."""
    own = sorted(by(of.rows, "implementation")[growth.implementation], key=itemgetter(of.axis.column))
    xs, ys, lows, highs = (
        [row[name] for row in own] for name in (of.axis.column, "latency_s", "latency_low_s", "latency_high_s")
    )
    at = np.geomspace(xs[0], xs[-1], 200) if growth.fit else xs
    look_of = look(style(growth.implementation), 5.0)
    axes.plot(at, growth.fit.seconds(np.asarray(at)) if growth.fit else ys, **{**look_of, "marker": "none"})
    marks(axes, style(growth.implementation), [x * beside for x in xs], ys, lows=lows, highs=highs,
        label=growth.implementation)  # fmt: skip


def _exponents(axes: Axes, growth: Growth, what: str, share: float) -> None:
    """Draw the exponents of an implementation, each beside those of the others between its two places."""
    each = getattr(growth, what)
    at = [of.start ** (1 - share) * of.end**share for of in each]
    slopes, lows, highs = ([getattr(of.slope, name) for of in each] for name in ("value", "low", "high"))
    if what != "latency":  # the memory of a call is exact
        lows, highs = [], []
    marks(axes, style(growth.implementation), at, slopes, lows=lows, highs=highs)
    axes.set(ylim=(LEAST, MOST), yticks=[0, 1, 2, 3], ylabel=f"exponent\nof {what}")
