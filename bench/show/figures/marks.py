"""The panels of a picture, drawn by Matplotlib: axes, marks, and names beside them. Sizes are in points."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from bench.analyse.rows import grouped
from bench.show.figures.layout import spread
from bench.show.palette import ink, light, mix, style
from bench.show.picture import SLOT, Kind, Marks, Panel, Place, Rows, Scale, Shape
from bench.stats.estimates import Array
from impls.catalogue import Dash, Style

LABEL_GAP = 0.185
"""The height of a name beside a panel, in inches."""

SAMPLE, LABEL_START, LEADER_END, TEXT_START = (0.18, 0.37, 0.56), 0.62, 0.16, 0.1
"""Beside a panel, in inches: a line sample's ends and its middle, the start of a name, the end of its leader, and the
start of a text without a sample."""

LEADER: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.6}

TICK_GAP = 0.08
"""The least gap between the labels of two ticks, in inches."""

BAND_ALPHA, MOST_ALPHA, EDGE_ALPHA, EDGE_WIDTH = 0.5, 0.18, 0.3, 0.6
"""All bands of a panel together are as opaque as BAND_ALPHA, so that many wide ones hide no line."""

MARKER_STEP = 0.5
"""Markers shrink from the first line to the last, so that the ones behind are visible."""

MARK_EDGE = 1.1

CAP = 3.5
"""The height of the end of an interval."""


@dataclass(frozen=True)
class _Name:
    """A name beside a panel with a sample of its marks, and where its line ends: nowhere, or at a height alone."""

    text: str
    sample: Mapping[str, Any]
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True)
class _Drawing:
    """The axes of a panel, its series that are side by side, and the names that are to stand beside it."""

    axes: Axes
    panel: Panel
    names: list[_Name] = field(default_factory=list)

    def at(self, place: Place, row: dict[str, Any], scale: Scale) -> float:
        """Return where a mark stands on an axis."""
        value = row[place] if isinstance(place, str) else place
        return float(scale.ticks.index(value)) if scale.kind is Kind.PLACES else float(value or 0)

    def xy(self, of: Marks, rows: Rows) -> tuple[list[float], list[float]]:
        """Return where the marks of some rows stand."""
        xs = [self.at(of.x, row, self.panel.x) for row in rows]
        return xs, [self.at(of.y, row, self.panel.y) + self.shift(of, row) for row in rows]

    def shift(self, of: Marks, row: dict[str, Any]) -> float:
        """Return by how much a mark stands below its place, because series are side by side there."""
        if not of.side_by_side:
            return 0.0
        beside = (each for each in self.panel.marks if each.side_by_side)
        names = [*dict.fromkeys(own[each.by] for each in beside for own in each.drawn(self.panel.rows))]
        return SLOT * ((names.index(row[of.by]) + 0.5) / len(names) - 0.5)

    def reach(self, place: Place, end: Place, row: dict[str, Any], scale: Scale) -> tuple[float, float]:
        """Return the ends of a cell along an axis."""
        if place is None:
            return _ends(scale)
        start = self.at(place, row, scale)
        return (start - 0.5, start + 0.5) if scale.kind is Kind.PLACES else (start, self.at(end, row, scale))


def draw(axes: Axes, panel: Panel, *, is_lowest: bool) -> None:
    """Draw a panel; the lowest of a stack has the labels of the axis below it."""
    _set_scales(axes, panel, is_lowest=is_lowest)
    drawing = _Drawing(axes, panel)
    for number, marks in enumerate(panel.marks):
        rows = marks.drawn(panel.rows)
        if rows:
            DRAWN[marks.shape](drawing, marks, rows, 2 + number / 10)
    _write_names(drawing)


def look(of: Style, size: float) -> dict[str, Any]:
    """Return Matplotlib's options for the marks of a style."""
    return {
        "color": light(of.colour),
        "marker": of.marker,
        "markersize": size,
        "markerfacecolor": light("surface") if of.hollow else light(of.colour),
        "markeredgecolor": light(of.colour),
        "markeredgewidth": MARK_EDGE,
    }


def style_of(of: Marks, series: str) -> Style:
    """Return the style of a series of marks; the empty one has that of the marks themselves."""
    if not series:
        return Style(of.colour, of.dash, of.marker or "o", of.is_hollow)
    own = of.styles.get(series) or style(series)
    return replace(own, marker=of.marker or own.marker, hollow=of.is_hollow or own.hollow)


def _colour(of: Marks, row: dict[str, Any]) -> str:
    """Return the colour of a row's mark."""
    if of.strength:
        return mix(light("surface"), style(row[of.fill]).colour, row[of.strength]) if row[of.fill] else light("open")
    return light(row[of.fill] if of.fill else style_of(of, row[of.by] if of.by else "").colour)


def _by_series(of: Marks, rows: Rows) -> dict[str, list[dict[str, Any]]]:
    return grouped(rows, lambda row: str(row[of.by])) if of.by else {"": [*rows]}


def _ends(scale: Scale) -> tuple[float, float]:
    return (-0.5, len(scale.ticks) - 0.5) if scale.kind is Kind.PLACES else (scale.ends or (0.0, 1.0))


def _set_scales(axes: Axes, panel: Panel, *, is_lowest: bool) -> None:
    for name, scale in (("x", panel.x), ("y", panel.y)):
        is_of_places = scale.kind is Kind.PLACES
        low, high = _ends(scale)
        ends = (high, low) if is_of_places and name == "y" else (low, high)
        axes.set(**{f"{name}scale": "log" if scale.kind is Kind.LOG else "linear", f"{name}lim": ends})
        at = [*range(len(scale.ticks))] if is_of_places else scale.ticks
        getattr(axes, f"set_{name}ticks")(at, labels=scale.labels)
        if is_of_places:
            axes.tick_params(axis=name, length=0)  # type: ignore[arg-type]
            axes.grid(visible=False, axis=name)  # type: ignore[arg-type]
            axes.spines["left" if name == "y" else "bottom"].set_visible(False)
    axes.minorticks_off()
    axes.set_ylabel(panel.y.title)
    if is_lowest:
        axes.set_xlabel(panel.x.title)
        _thin(axes)
    else:
        axes.tick_params(axis="x", labelbottom=False, length=0)


def _thin(axes: Axes) -> None:
    """Leave out the numbers below a panel that have no room.

    The ends come first, then the others from the right, where the distances of a sweep's places are long.
    """
    labels = axes.get_xticklabels()
    written: list[Bbox] = []
    for number in chain(labels[:0:-1][:1], labels[:1], labels[-2:0:-1]):
        box = number.get_window_extent().padded(TICK_GAP / 2 * axes.get_figure(root=True).dpi)  # type: ignore[union-attr]
        number.set_visible(not any(map(box.overlaps, written)))
        written += [box] if number.get_visible() else []


def _draw_lines(drawing: _Drawing, of: Marks, rows: Rows, zorder: float) -> None:
    """Draw the lines of all series, solid ones first, so that others can be seen on them."""
    series = _by_series(of, rows)
    ordered = sorted(series, key=lambda name: bool(style_of(of, name).dash))
    lines = {name: drawing.xy(of, series[name]) for name in ordered}
    for rank, (name, (xs, ys)) in enumerate(lines.items()):
        own = style_of(of, name)
        size = max(of.size - MARKER_STEP * rank, of.size / 2)
        options = {**look(own, size), "linewidth": of.width, "linestyle": _dash(own.dash)}
        drawn = options if of.has_points else {**options, "marker": "none"}
        at = _with_gaps(drawing.panel.x, xs, ys)
        drawing.axes.plot(*at, gid=f"line {name}", zorder=zorder + rank / 1000, **drawn)
        if of.beside:
            last = int(np.argmax(xs))
            drawing.names.append(_Name(name, options, xs[last], ys[last]))


def _with_gaps(scale: Scale, xs: Sequence[float], ys: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return a line that is broken where it has no value at a tick; one between ticks has no gaps."""
    if not {*xs} <= {*scale.ticks}:
        return [*xs], [*ys]
    at = dict(zip(xs, ys, strict=True))
    return [*map(float, scale.ticks)], [at.get(float(tick), math.nan) for tick in scale.ticks]


def _dash(dash: Dash) -> tuple[float, Dash] | str:
    return (0.0, dash) if dash else "solid"


def _draw_bands(drawing: _Drawing, of: Marks, rows: Rows, zorder: float) -> None:
    series = _by_series(of, rows)
    alpha = min(MOST_ALPHA, BAND_ALPHA / len(series))
    for name, own in series.items():
        colour = light(style_of(of, name).colour)
        xs, lows = drawing.xy(of, own)
        highs = [drawing.at(of.y2, row, drawing.panel.y) for row in own]
        at, bottoms = _with_gaps(drawing.panel.x, xs, lows)
        drawing.axes.fill_between(at, bottoms, _with_gaps(drawing.panel.x, xs, highs)[1], facecolor=(colour, alpha),
            edgecolor=(colour, EDGE_ALPHA), linewidth=EDGE_WIDTH, zorder=zorder, gid=f"band {name}")  # fmt: skip


def _draw_rules(drawing: _Drawing, of: Marks, rows: Rows, zorder: float) -> None:
    for row in rows:
        options: dict[str, Any] = {"color": _colour(of, row), "linewidth": of.width, "alpha": of.opacity,
            "linestyle": _dash(of.dash), "zorder": zorder, "gid": f"rule {row[of.by] if of.by else ''}"}  # fmt: skip
        if of.x is None:
            y = drawing.at(of.y, row, drawing.panel.y)
            drawing.axes.axhline(y, **options)
            if of.beside:
                sample = {name: options[name] for name in ("color", "linewidth")}
                drawing.names.append(_Name(str(row[of.text]), sample, _ends(drawing.panel.x)[1], y))
        elif of.y is None:
            drawing.axes.axvline(drawing.at(of.x, row, drawing.panel.x), **options)
        else:
            (x,), (y,) = drawing.xy(of, [row])
            x2 = x if of.x2 is None else drawing.at(of.x2, row, drawing.panel.x)
            y2 = y if of.y2 is None else drawing.at(of.y2, row, drawing.panel.y)
            caps: dict[str, Any] = {"marker": "_" if of.x2 is None else "|", "markersize": CAP} if of.has_caps else {}
            drawing.axes.plot([x, x2], [y, y2], solid_capstyle="butt", **options, **caps)


def _draw_points(drawing: _Drawing, of: Marks, rows: Rows, zorder: float) -> None:
    for name, own in _by_series(of, rows).items():
        options: dict[str, Any] = {**look(style_of(of, name), of.size), "linestyle": "none"}
        colours = grouped(own, lambda row: _colour(of, row)) if of.fill else {options["color"]: own}
        for colour, same in colours.items():
            filled = {} if of.is_hollow else {"markerfacecolor": colour}
            options |= {"color": colour, "markeredgecolor": colour, **(filled if of.fill else {})}
            drawing.axes.plot(*drawing.xy(of, same), gid=f"point {name}", zorder=zorder, alpha=of.opacity,
                clip_on=False, **options)  # fmt: skip
        if of.beside:
            drawing.names.append(_Name(name, options))


def _draw_cells(drawing: _Drawing, of: Marks, rows: Rows, zorder: float) -> None:
    for row in rows:
        left, right = drawing.reach(of.x, of.x2, row, drawing.panel.x)
        top, bottom = drawing.reach(of.y, of.y2, row, drawing.panel.y)
        drawing.axes.add_patch(
            Rectangle((left, top), right - left, bottom - top, facecolor=_colour(of, row), alpha=of.opacity,
                edgecolor=light("surface"), linewidth=of.width, zorder=zorder)
        )  # fmt: skip


def _draw_texts(drawing: _Drawing, of: Marks, rows: Rows, zorder: float) -> None:
    for row in rows:
        words, colour = row[of.text], _colour(of, row)
        text = words if isinstance(words, str) else "\n".join(words)
        if of.beside:
            y = drawing.at(of.y, row, drawing.panel.y)
            drawing.names.append(_Name(text, {"color": colour}, None, y))
            continue
        (x,), (y,) = drawing.xy(of, [row])
        drawing.axes.annotate(text, (x, y), xytext=of.shift, textcoords="offset points", ha=of.align, va="center",
            size=of.size, weight="bold" if of.is_bold else "normal", color=colour, zorder=zorder,
            annotation_clip=False)  # fmt: skip


DRAWN: dict[Shape, Callable[[_Drawing, Marks, Rows, float], None]] = {
    Shape.LINE: _draw_lines,
    Shape.BAND: _draw_bands,
    Shape.RULE: _draw_rules,
    Shape.POINT: _draw_points,
    Shape.CELL: _draw_cells,
    Shape.TEXT: _draw_texts,
}


def _write_names(drawing: _Drawing) -> None:
    """Write the names beside a panel: those of lines near their ends with a leader, others from the top."""
    axes, height = drawing.axes, drawing.panel.height
    ended = [(each, (each.x, each.y)) for each in drawing.names if each.x is not None and each.y is not None]
    if ended:
        ends = _in_axes(axes, [end for _, end in ended])
        gap = LABEL_GAP / height
        places = spread(ends[:, 1].tolist(), gap, gap / 2, 1)
        for (each, _), (x, y), place in zip(ended, ends, places, strict=True):
            leader = {**LEADER, "color": each.sample["color"], "transform": axes.transAxes, "clip_on": False}
            axes.plot([x, 1, _beside(axes, LEADER_END)], [y, y, place], **leader)
            _write_beside(axes, place, each)
    listed = {each.text: each for each in drawing.names if each.y is None}
    for number, each in enumerate(listed.values()):
        _write_beside(axes, 1 - LABEL_GAP * (number + 0.5) / height, each)
    for each in drawing.names:
        if each.x is None and each.y is not None:
            _write_beside(axes, _in_axes(axes, [(axes.get_xlim()[1], each.y)])[0, 1], each)


def _write_beside(axes: Axes, place: float, of: _Name) -> None:
    """Write a name in a readable shade of its colour, beside its sample, at a share of the height of a panel."""
    options: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
    start = TEXT_START
    if len(of.sample) > 1:
        start = LABEL_START
        across = [_beside(axes, inches) for inches in SAMPLE]
        axes.plot(across, [place] * len(across), **{**of.sample, "markevery": [1]}, **options)
    axes.text(_beside(axes, start), place, of.text, color=ink(of.sample["color"]), va="center_baseline",
        gid=f"label {of.text}", **options)  # fmt: skip


def _beside(axes: Axes, inches: float) -> float:
    """Return how far right of a panel something stands, in widths of the panel."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return 1 + inches / float(axes.get_position().width * figure.get_size_inches()[0])


def _in_axes(axes: Axes, points: Sequence[tuple[float, float]]) -> Array:
    """Return where points stand, in shares of the width and height of axes: [points, 2]."""
    return np.asarray((axes.transData - axes.transAxes).transform(points))
