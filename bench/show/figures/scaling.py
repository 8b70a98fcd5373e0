"""The picture of a series: latencies with their fitted curves, and the local exponents."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.interpolate import make_interp_spline

from bench.analyse.axes import KEYS
from bench.analyse.growth import Exponent, Growth, Scaling, scalings
from bench.show.figures import page
from bench.show.figures.layout import Span, inside, sideways_steps
from bench.show.figures.line_data import Line, Picture, picture, quantities
from bench.show.figures.lines import LineStyle, draw_labels, line_styles, new_sheet, notes, plot_height
from bench.show.palette import style
from bench.show.rows import is_measured, plain
from bench.stats.estimates import Array
from impls.catalogue import Style

PANEL, GAP = 1.6, 0.24
"""The height of a panel of exponents, and the gap between panels, in inches."""

Curve = Callable[[Array], Array]
"""A function from places to seconds."""

CURVE_POINTS = 200

SIDE_STEP = 0.012
"""The step between marks that would overlap, as a share of the width; smaller if the next place is near."""

CURVE_WIDTH, BAR_WIDTH, MARKER_SIZE, CAP, ALPHA = 1.4, 1.0, 4.5, 1.6, 0.85

MARK_HEIGHT = 0.08
"""The height of a mark with its edge, in inches."""

BAND = "#efefef"
"""The colour behind marks that are drawn side by side."""

REACH, ENDS_ROOM = 0.75, 0.15
"""How far an interval may stretch an axis of exponents beyond their values; longer ones are cut off."""

USUAL = (0.0, 1.0, 2.0)
"""Exponents that the axis always holds: constant, linear, quadratic."""


def figures(table: pd.DataFrame) -> Iterator[page.Drawing]:
    """Yield a picture of each series of a table of results."""
    return ((name(each), figure(each)) for each in scalings(row for row in plain(table) if is_measured(row)))


def name(of: Scaling) -> str:
    """Return the picture in one word: a file name that stays the same whatever else was measured."""
    return f"scaling-{_latencies(of).name.removeprefix('latency-')}"


@page.styled()
def figure(of: Scaling) -> Figure:
    """Return the picture of a series as a figure."""
    latencies = _latencies(of)
    slopes = {
        "exponent\nof latency": {growth.implementation: growth.latency for growth in of.growths},
        "exponent of\npeak memory": {growth.implementation: growth.memory for growth in of.growths},
    }
    slopes = {label: slopes_of for label, slopes_of in slopes.items() if any(slopes_of.values())}
    heading = f"How latency and memory grow with {of.axis.name}"
    sheet = new_sheet(latencies, heading, [*_notes(of, latencies)], [PANEL] * len(slopes), GAP)
    main, *panels = sheet.axes
    latency(main, of, latencies)
    for axes, (label, slopes_of) in zip(panels, slopes.items(), strict=True):
        exponents(axes, label, slopes_of)
    sheet.align_ylabels()
    return sheet


def _latencies(of: Scaling) -> Picture:
    (quantity,) = (each for each in quantities(None) if each.column == "latency_s")
    latencies = picture(of.rows, quantity, of.axis)
    assert latencies is not None, "a series holds latencies"
    return latencies


def _notes(of: Scaling, latencies: Picture) -> Iterator[str]:
    band, *origin = notes(latencies)
    yield band.replace("band", "bars")
    yield "marks that would overlap stand side by side on grey, each at the height of its own time"
    if any(growth.fit for growth in of.growths):
        yield f"curves: {'a + b·M' if of.axis is KEYS else 'a + b·N + c·N²'} fitted to the latencies"
    yield "an exponent is drawn between its two places"
    yield from origin


def latency(axes: Axes, of: Scaling, picture: Picture) -> None:
    """Draw each implementation's latencies with their intervals, and its curve, or straight lines without one."""
    growths = {growth.implementation: growth for growth in of.growths}
    curves = {line.label: _curve(growths[line.implementation], picture.xs, line.values) for line in picture.lines}
    lines = {line.label: line for line in picture.lines}
    smooth = replace(picture, lines=tuple(_on(curves[line.label], picture.xs, line) for line in picture.lines))
    side_factors = _side_factors(axes, picture)
    for line_style in line_styles(smooth, axes.get_ylim()):
        label = line_style.line.label
        _implementation(axes, picture.xs, line_style, lines[label], curves[label], side_factors[label])
    draw_labels(axes, smooth)


def exponents(axes: Axes, label: str, exponents_of: Mapping[str, Sequence[Exponent]]) -> None:
    """Draw each exponent between its two places, all implementations side by side."""
    slopes = [each.slope for of in exponents_of.values() for each in of]
    low, high = min(*USUAL, *(slope.value for slope in slopes)), max(*USUAL, *(slope.value for slope in slopes))
    ends = [(slope.low, slope.high) for slope in slopes if slope.is_known]
    bottom = max(low - REACH, min([low, *(end for end, _ in ends)])) - ENDS_ROOM
    top = min(high + REACH, max([high, *(end for _, end in ends)])) + ENDS_ROOM
    axes.set(ylim=(bottom, top), ylabel=label)
    axes.set_yticks(inside(MaxNLocator(6, integer=True).tick_values(bottom, top), bottom, top))
    for number, (implementation, of) in enumerate(exponents_of.items(), start=1):
        share = number / (len(exponents_of) + 1)
        xs = [each.start ** (1 - share) * each.end**share for each in of]
        values, lows, highs = np.array([(e.slope.value, e.slope.low, e.slope.high) for e in of]).reshape(-1, 3).T
        gid = f"{' '.join(label.split())} {implementation}"
        _marks(axes, np.array(xs), values, np.stack([values - lows, highs - values]), style(implementation), gid)


def _implementation(
    axes: Axes, places: Sequence[int], line_style: LineStyle, line: Line, curve: Curve, side_factors: Array
) -> None:
    """Draw a curve, and the marks of its line at their values, each moved sideways by its factor."""
    is_there = np.isfinite(line.values)
    rows = (places, line.values, line.lows, line.highs, side_factors)
    xs, values, lows, highs, side_factor = (np.asarray(row)[is_there] for row in rows)
    curve_xs = np.geomspace(xs[0], xs[-1], CURVE_POINTS)
    options = {**line_style.on_axes, "marker": "none", "linewidth": CURVE_WIDTH}
    axes.plot(curve_xs, curve(curve_xs), gid=f"curve {line.label}", **options)
    reach = np.stack([values - lows, highs - values])
    _marks(axes, xs * side_factor, values, reach, line_style.style, f"latency {line.label}")


def _curve(growth: Growth, places: Sequence[int], values: Sequence[float]) -> Curve:
    """Return the fitted curve, or straight lines from place to place if there is no fit."""
    if growth.fit:
        return growth.fit.seconds
    is_there = np.isfinite(values)
    xs, ys = np.asarray(places)[is_there], np.asarray(values)[is_there]
    if len(xs) < 2:
        return lambda at: np.full_like(at, ys[0], dtype=np.float64)
    straight = make_interp_spline(np.log(xs), np.log(ys), k=1)
    return lambda at: np.asarray(np.exp(straight(np.log(at))))


def _on(curve: Curve, places: Sequence[int], line: Line) -> Line:
    """Return the line with each value replaced by the curve's."""
    values = np.where(np.isfinite(line.values), curve(np.asarray(places, dtype=np.float64)), np.nan)
    return replace(line, values=tuple(values.tolist()))


def _side_factors(axes: Axes, picture: Picture) -> dict[str, Array]:
    """Return the factors by which each line's marks move sideways, and shade the places if marks move.

    Only marks that would overlap move, and only sideways: the height of a mark is its value.
    """
    steps = np.array(
        [sideways_steps(_spans(axes, picture, place)) for place in range(len(picture.xs))]
    )  # [places, lines]
    low, high = axes.get_xlim()
    nearest, most = float(np.min(np.diff(np.log(picture.xs)))), 2 * float(np.abs(steps).max()) + 1
    step = min(SIDE_STEP * math.log(high / low), 0.8 * nearest / most)
    if most > 1:
        for x in picture.xs:
            reach = math.exp(most / 2 * step)
            axes.axvspan(x / reach, x * reach, color=BAND, linewidth=0, zorder=0.4, gid=f"place {x}")
    return dict(zip((line.label for line in picture.lines), np.exp(step * steps).T, strict=True))


def _spans(axes: Axes, picture: Picture, place: int) -> list[Span]:
    """Return the vertical ends of all marks of a place with their intervals, in logarithms; NaN for a missing one."""
    low, high = np.log(axes.get_ylim())
    room = MARK_HEIGHT / plot_height(picture) * float(high - low) / 2
    marks = np.log([(line.values[place], line.lows[place], line.highs[place]) for line in picture.lines])
    return [(float(np.fmin(value - room, bottom)), float(np.fmax(value + room, top))) for value, bottom, top in marks]


def _marks(axes: Axes, xs: Array, values: Array, reach: Array, mark_style: Style, gid: str) -> None:
    """Draw marks with bars to the ends of their intervals, without a bar if there is no interval."""
    options: dict[str, Any] = {
        **page.marker(mark_style, MARKER_SIZE, 0.9),
        "linestyle": "none",
        "color": mark_style.colour,
        "elinewidth": BAR_WIDTH,
        "capsize": CAP,
        "alpha": ALPHA,
        "zorder": 4,
    }
    container = axes.errorbar(xs, values, yerr=reach if np.isfinite(reach).any() else None, **options)
    container[0].set_gid(gid)
