"""Pictures of one metric along one axis: a line for each implementation, with its name beside its end."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.plan.case import HUGE
from bench.show.figures import layout, page
from bench.show.figures.layout import spread
from bench.show.figures.line_data import Failure, Line, Picture, pictures
from bench.show.figures.page import facts
from bench.show.palette import style
from bench.show.rows import UNTRIED, origins, process_count
from impls.catalogue import DOTTED, LONG, Style

STRIP_GAP = 0.12
"""The gap between the lines and the strip of failures, in inches."""

LINE_WIDTH, REFERENCE_WIDTH = 1.8, 1.2
MARKER_SIZE, MARKER_STEP = 7.5, 0.5
"""Markers shrink from the first line to the last, so that the ones behind are visible."""

BAND_ALPHA, EDGE_ALPHA, EDGE_WIDTH = 0.5, 0.3, 0.6
"""All bands of a picture together are as opaque as BAND_ALPHA, so that many wide ones hide no line."""
MOST_ALPHA = 0.18

COINCIDE = 0.004
"""Lines coincide if they nowhere differ by more than this share of the axis."""

STRIPE = 3.0
"""The length of a stripe of a shared line, in line widths."""

ALLOCATOR_DASHES = {"system": DOTTED, HUGE: LONG}
"""The dashes of lines under another allocator than the usual one."""

LEADER: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.6}

LEADER_END = 1.03
"""The end of a leader beside the axes, in their widths."""


def figures(table: pd.DataFrame) -> Iterator[page.Drawing]:
    """Yield every picture that a table of results has values for."""
    return ((picture.name, figure(picture)) for picture in pictures(table))


@page.styled()
def figure(picture: Picture) -> Figure:
    """Return the picture as a figure."""
    by = ", by allocator" if picture.by_allocator else ""
    heading = f"{picture.quantity.filled(picture.quantity.axis.title)} against {picture.axis.name}{by}"
    strip = [page.ROW_HEIGHT * len(picture.failures)] if picture.failures else []
    sheet = new_sheet(picture, heading, notes(picture), strip, STRIP_GAP)
    main, *below = sheet.axes
    draw_lines(main, picture)
    draw_labels(main, picture)
    for axes in below:
        draw_failures(axes, picture.failures)
    return sheet


def new_sheet(picture: Picture, heading: str, notes: Sequence[str], below: Sequence[float], gap: float) -> Figure:
    """Return a figure with axes for a picture, and panels of these heights below them; `gap` is between panels."""
    panels = [plot_height(picture), *below]
    sheet = page.new_figure(heading, facts(picture.point, picture.rows, picture.varying), notes, panels, gap)
    follows = "  (token length = channels)" if "token_len" in picture.varying else ""
    page.set_places(sheet, picture.xs, f"{picture.axis.name} {picture.axis.symbol}{follows}")
    _set_vertical_scale(sheet.axes[0], picture)
    return sheet


def plot_height(picture: Picture) -> float:
    """Return a height in inches that has room for the label of every line."""
    return max(page.AXES_HEIGHT, page.LABEL_GAP * (len(picture.lines) + 2))


def notes(picture: Picture) -> list[str]:
    """Return the footnotes: what the bands are, and the origin of the numbers."""
    if not picture.quantity.axis.low:
        return origins(picture.rows)
    processes = process_count(row for row in picture.rows if row["status"] == "ok")
    has_band = any(math.isfinite(low) for line in picture.lines for low in line.lows)
    percent = 99 if picture.quantity.axis.relative else 95
    band = f"band: {percent} % interval over {processes}" if has_band else f"{processes}, so no interval"
    return [band, *origins(picture.rows)]


def _set_vertical_scale(axes: Axes, picture: Picture) -> None:
    quantity = picture.quantity
    ends = layout.limits(
        [*((1.0,) if quantity.axis.relative else ()), *(value for line in picture.lines for value in line.values)],
        [low for line in picture.lines for low in line.lows],
        [high for line in picture.lines for high in line.highs],
    )
    ticks = quantity.ticks(*ends)
    axes.set(yscale="log", ylim=ends, ylabel=quantity.filled(quantity.axis.label))
    axes.set_yticks(ticks, labels=[*map(quantity.tick_label, ticks)])
    axes.minorticks_off()


@dataclass(frozen=True)
class LineStyle:
    """How a line is drawn: its style, and its options for matplotlib."""

    line: Line
    style: Style
    on_axes: dict[str, Any]

    @property
    def in_label(self) -> dict[str, Any]:
        """The options of the sample beside its name: in its own dashes, also if the line coincides with others."""
        return {**self.on_axes, "linestyle": page.linestyle(self.style.dash)}


def line_styles(picture: Picture, ends: tuple[float, float]) -> list[LineStyle]:
    """Return how each line is drawn: solid ones first, coinciding ones as stripes of one line."""
    lines = sorted(picture.lines, key=lambda line: bool(_style_of(line).dash))
    styles: list[LineStyle] = []
    for members in _coincident(lines, ends):
        stripes = (STRIPE, STRIPE * (len(members) - 1))
        for place, line in enumerate(members):
            own, rank = _style_of(line), len(styles)
            options = {
                "color": own.colour,
                "linewidth": LINE_WIDTH,
                "linestyle": page.linestyle(stripes, -STRIPE * place) if len(members) > 1 else page.linestyle(own.dash),
                **page.marker(own, max(MARKER_SIZE - MARKER_STEP * rank, MARKER_SIZE / 2), 1.1),
                "zorder": 3 + rank / 100,
            }
            styles.append(LineStyle(line, own, options))
    return styles


def draw_lines(axes: Axes, picture: Picture) -> None:
    """Draw every line with its band, and the rule at 1 if the quantity is a ratio."""
    if picture.reference:
        axes.axhline(1, color=reference_colour(picture), linewidth=REFERENCE_WIDTH, zorder=2.5, gid="reference")
    for line_style in line_styles(picture, axes.get_ylim()):
        line, colour = line_style.line, line_style.style.colour
        face, edge = (colour, min(MOST_ALPHA, BAND_ALPHA / len(picture.lines))), (colour, EDGE_ALPHA)
        band_options: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "linewidth": EDGE_WIDTH, "zorder": 2}
        axes.fill_between(picture.xs, line.lows, line.highs, **band_options)
        axes.plot(picture.xs, line.values, gid=f"line {line.label}", **line_style.on_axes)


def reference_colour(picture: Picture) -> str:
    """Return the colour of the rule at 1: that of the baseline if it is known."""
    return style(picture.quantity.baseline).colour if picture.quantity.baseline else page.GREY


def _style_of(line: Line) -> Style:
    """Return the implementation's style; another allocator than the usual one has its own dash, and hollow markers."""
    own, dash = style(line.implementation), ALLOCATOR_DASHES.get(line.allocator)
    return replace(own, dash=dash, hollow=True) if dash else own


def _coincident(lines: Sequence[Line], ends: tuple[float, float]) -> list[list[Line]]:
    room = COINCIDE * math.log(ends[1] / ends[0])
    groups: list[list[Line]] = []
    for line in lines:
        home = next((group for group in groups if _same(group[0], line, room)), [])
        if not home:
            groups.append(home)
        home.append(line)
    return groups


def _same(one: Line, other: Line, room: float) -> bool:
    distances = np.abs(np.log(one.values) - np.log(other.values))
    shared = distances[np.isfinite(distances)]
    # two lines that share one place only cross there
    return bool(shared.size > 1 and shared.max() <= room)


def draw_labels(axes: Axes, picture: Picture) -> None:
    """Write each line's name beside its end, with a leader line and a sample of the line."""
    labels: list[tuple[tuple[float, float], str, dict[str, Any]]] = []
    for each in line_styles(picture, axes.get_ylim()):
        last = max(index for index, value in enumerate(each.line.values) if math.isfinite(value))
        labels.append(((picture.xs[last], each.line.values[last]), each.line.label, each.in_label))
    if picture.reference:
        sample = {"color": reference_colour(picture), "linewidth": REFERENCE_WIDTH}
        labels.append(((axes.get_xlim()[1], 1.0), picture.reference, sample))
    ends, gap = page.in_axes(axes, [end for end, *_ in labels]), page.LABEL_GAP / plot_height(picture)
    places = spread(ends[:, 1].tolist(), gap, gap / 2, 1)
    for (_, label, sample), (x, y), place in zip(labels, ends, places, strict=True):
        leader = {**LEADER, "color": sample["color"], "transform": axes.transAxes, "clip_on": False}
        axes.plot([x, 1, LEADER_END], [y, y, place], **leader)
        page.write_beside(axes, place, label, sample)


def draw_failures(axes: Axes, failures: Sequence[Failure]) -> None:
    """Mark the failures: a row for each implementation and status, a symbol at each place."""
    axes.set_ylim(len(failures) - 0.4, -0.6)
    axes.set_yticks(range(len(failures)), labels=[failure.status for failure in failures], size=page.SMALL_SIZE)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for row, failure in enumerate(failures):
        options = _symbol(failure.status, style(failure.implementation).colour)
        gid = f"failure {failure.label} {failure.status}"
        axes.plot(failure.xs, [row] * len(failure.xs), gid=gid, clip_on=False, **options)
        page.write_beside(axes, page.in_axes(axes, [(failure.xs[0], row)])[0, 1], failure.label, options)


def _symbol(status: str, colour: str) -> dict[str, Any]:
    untried = status in UNTRIED
    return {
        "color": colour,
        "linestyle": "none",
        "marker": "o" if untried else "X",
        "markersize": 5 if untried else 7.5,
        "markerfacecolor": "white" if untried else colour,
        "markeredgecolor": colour if untried else "white",
        "markeredgewidth": 1.1 if untried else 0.6,
    }
