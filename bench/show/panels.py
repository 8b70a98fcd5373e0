"""What is drawn into the picture of how a series grows, panel by panel."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.interpolate import make_interp_spline

from bench.analyse.scaling.crossover import Crossover
from bench.analyse.scaling.growth import Exponent, Growth, Scaling
from bench.show import intervals, scales, units
from bench.show.asides import Span, asides
from bench.show.edges import draw_labels, height
from bench.show.frame import AXES_WIDTH, LABEL_START, Sheet
from bench.show.palette import ink, style
from bench.show.pictures import Line, Picture
from bench.show.strokes import LINE_WIDTH, Stroke, strokes
from bench.stats.replicates import Array
from impls.catalogue import Style

Curve = Callable[[Array], Array]
"""From places to seconds."""

LABEL_PLACE = -0.11
"""From the axes to the names of vertical axes, as a share of the width: in one line over all panels."""

CURVE_POINTS = 200

ASIDE = 0.012
"""Marks that would overlap stand so far apart, as a share of the width, or nearer if the next place is near."""

CURVE_WIDTH, BAR_WIDTH, MARKER_SIZE, CAP, ALPHA = 1.4, 1.0, 4.5, 1.6, 0.85

MARK_HEIGHT = 0.08
"""The height of a mark with its edge, in inches."""

BAND = "#efefef"
"""The colour behind the places where marks stand side by side."""

REACH, MARGIN = 0.75, 0.15
"""How far an interval may stretch an axis of exponents beyond their values: the rest of a wild one is cut off."""

USUAL = (0.0, 1.0, 2.0)
"""Exponents that one looks for: constant, linear, quadratic."""


def along(axes: Axes, places: Sequence[int]) -> None:
    """Give axes the horizontal scale that all panels share, without numbers."""
    axes.set_xscale("log")
    axes.set_xlim(scales.padded(places[0], places[-1]))
    axes.set_xticks(places, labels=[])
    axes.set_xticks([], minor=True)
    axes.tick_params(axis="x", length=0)


def latency(axes: Axes, of: Scaling, shown: Picture) -> None:
    """Draw each implementation's latencies with their intervals, and its curve, or straight lines without one."""
    _vertical(axes, shown)
    growths = {growth.implementation: growth for growth in of.growths}
    curves = {line.label: _curve(growths[line.implementation], shown.xs, line.values) for line in shown.lines}
    lines = {line.label: line for line in shown.lines}
    smooth = replace(shown, lines=tuple(_on(curves[line.label], shown.xs, line) for line in shown.lines))
    asides = _asides(axes, shown)
    for stroke in strokes(smooth, axes.get_ylim()):
        label = stroke.line.label
        _implementation(axes, shown.xs, stroke, lines[label], curves[label], asides[label])
    for each in of.crossovers:
        axes.axvline(each.tokens.value, color=style(each.after).colour, linewidth=0.8, linestyle=(0, (1, 2)), zorder=2)
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    draw_labels(Sheet(figure, axes, None), smooth)


def exponents(axes: Axes, label: str, found: Mapping[str, Sequence[Exponent]]) -> None:
    """Draw the exponents between their places, all implementations side by side."""
    slopes = [each.slope for of in found.values() for each in of]
    low, high = min(*USUAL, *(slope.value for slope in slopes)), max(*USUAL, *(slope.value for slope in slopes))
    known = [slope for slope in slopes if slope.is_known]
    bottom = max(low - REACH, min([low, *(slope.low for slope in known)])) - MARGIN
    top = min(high + REACH, max([high, *(slope.high for slope in known)])) + MARGIN
    axes.set_ylim(bottom, top)
    axes.set_yticks(range(math.ceil(bottom), math.floor(top) + 1))
    _label(axes, label)
    for number, (implementation, of) in enumerate(found.items(), start=1):
        share = number / (len(found) + 1)
        xs = [each.start ** (1 - share) * each.end**share for each in of]
        values, lows, highs = np.array([(e.slope.value, e.slope.low, e.slope.high) for e in of]).reshape(-1, 3).T
        gid = f"{' '.join(label.split())} {implementation}"
        _marks(axes, np.array(xs), values, np.stack([values - lows, highs - values]), style(implementation), gid)


def crossovers(axes: Axes, found: Sequence[Crossover]) -> None:
    """Draw a row for each crossover: its place, its interval as far as the axis goes, and in words who follows whom."""
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    low, high = axes.get_xlim()
    for row, each in enumerate(found):
        colour, at = style(each.after).colour, each.tokens
        gid = f"crossover {each.before} {each.after}"
        if at.is_known:
            ends = [max(at.low, low), min(at.high, high)]
            axes.plot(ends, [row] * 2, color=colour, linewidth=2 * LINE_WIDTH, alpha=0.5, solid_capstyle="butt")
        axes.plot([at.value], [row], color=colour, marker="|", markersize=10, markeredgewidth=LINE_WIDTH, gid=gid)
        axes.text(
            1 + LABEL_START / AXES_WIDTH,
            row,
            change(each),
            transform=axes.get_yaxis_transform(),
            color=ink(colour),
            va="center_baseline",
            gid=f"label {gid}",
        )


def change(of: Crossover) -> str:
    """Return what stands beside a crossover: `eager → sdpa at 170 [140, 220]`."""
    return f"{of.before} → {of.after} {intervals.place(of.tokens)}"


def _vertical(axes: Axes, shown: Picture) -> None:
    ends = scales.limits(
        [value for line in shown.lines for value in line.values],
        [low for line in shown.lines for low in line.lows],
        [high for line in shown.lines for high in line.highs],
    )
    ticks = scales.decimal(*ends)
    axes.set_yscale("log")
    axes.set_ylim(ends)
    axes.set_yticks(ticks, labels=[units.seconds(tick, trim=True) for tick in ticks])
    axes.set_yticks([], minor=True)
    _label(axes, "time per call")


def _label(axes: Axes, text: str) -> None:
    axes.set_ylabel(text)
    axes.yaxis.set_label_coords(LABEL_PLACE, 0.5)


def _implementation(axes: Axes, places: Sequence[int], stroke: Stroke, line: Line, curve: Curve, asides: Array) -> None:
    """Draw a curve, and the marks of its line at their values, moved sideways by a factor of the place each."""
    known = np.isfinite(line.values)
    rows = (places, line.values, line.lows, line.highs, asides)
    xs, values, lows, highs, aside = (np.asarray(row)[known] for row in rows)
    along_it = np.geomspace(xs[0], xs[-1], CURVE_POINTS)
    look = {**stroke.on_axes, "marker": "none", "linewidth": CURVE_WIDTH}
    axes.plot(along_it, curve(along_it), gid=f"curve {line.label}", **look)
    reach = np.stack([values - lows, highs - values])
    _marks(axes, xs * aside, values, reach, stroke.look, f"latency {line.label}")


def _curve(growth: Growth, places: Sequence[int], values: Sequence[float]) -> Curve:
    """Return the fitted curve, or without one straight lines from place to place."""
    if growth.fit:
        return growth.fit.seconds
    known = np.isfinite(values)
    xs, ys = np.asarray(places)[known], np.asarray(values)[known]
    if len(xs) < 2:
        return lambda at: np.full_like(at, ys[0], dtype=np.float64)
    straight = make_interp_spline(np.log(xs), np.log(ys), k=1)
    return lambda at: np.asarray(np.exp(straight(np.log(at))))


def _on(curve: Curve, places: Sequence[int], line: Line) -> Line:
    """Return the line with the values of its curve wherever it has any."""
    values = np.where(np.isfinite(line.values), curve(np.asarray(places, dtype=np.float64)), np.nan)
    return replace(line, values=tuple(values.tolist()))


def _asides(axes: Axes, shown: Picture) -> dict[str, Array]:
    """Return for each line the factors by which its marks move sideways, and shade the places that have such marks.

    Only marks that would overlap move, and only sideways: the height of a mark is its value.
    """
    steps = np.array([asides(_spans(axes, shown, place)) for place in range(len(shown.xs))])  # [places, lines]
    low, high = axes.get_xlim()
    nearest, most = float(np.min(np.diff(np.log(shown.xs)))), 2 * float(np.abs(steps).max()) + 1
    step = min(ASIDE * math.log(high / low), 0.8 * nearest / most)
    if most > 1:
        for x in shown.xs:
            reach = math.exp(most / 2 * step)
            axes.axvspan(x / reach, x * reach, color=BAND, linewidth=0, zorder=0.4, gid=f"place {x}")
    return dict(zip((line.label for line in shown.lines), np.exp(step * steps).T, strict=True))


def _spans(axes: Axes, shown: Picture, place: int) -> list[Span]:
    """Return the vertical ends of all marks of a place with their intervals, in logarithms; NaN for a missing one."""
    low, high = np.log(axes.get_ylim())
    room = MARK_HEIGHT / height(axes) * float(high - low) / 2
    marks = np.log([(line.values[place], line.lows[place], line.highs[place]) for line in shown.lines])
    return [(float(np.fmin(value - room, bottom)), float(np.fmax(value + room, top))) for value, bottom, top in marks]


def _marks(axes: Axes, xs: Array, values: Array, reach: Array, look: Style, gid: str) -> None:
    """Draw marks with bars to the ends of their intervals; what has none is a mark alone."""
    drawing: dict[str, Any] = {
        "fmt": look.marker,
        "color": look.colour,
        "markersize": MARKER_SIZE,
        "markerfacecolor": "white" if look.hollow else look.colour,
        "markeredgewidth": 0.9,
        "elinewidth": BAR_WIDTH,
        "capsize": CAP,
        "alpha": ALPHA,
        "zorder": 4,
    }
    container = axes.errorbar(xs, values, yerr=reach if np.isfinite(reach).any() else None, **drawing)
    container[0].set_gid(gid)
