"""Lines with their bands, drawn so that no line hides another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bench.plan.case import COLUMNS
from bench.show.figures.line_data import Line, Picture
from bench.show.figures.page import GREY, marker
from bench.show.palette import style
from impls.catalogue import DOTTED, Dash, Style

LINE_WIDTH, REFERENCE_WIDTH = 1.8, 1.2
MARKER_SIZE, MARKER_STEP = 7.5, 0.5
"""Markers shrink from the first line to the last, so that the ones behind are visible."""

BAND_ALPHA, EDGE_ALPHA, EDGE_WIDTH = 0.5, 0.3, 0.6
"""All bands of a picture together are as opaque as BAND_ALPHA, so that many wide ones hide no line."""
MOST_ALPHA = 0.18

SAME = 0.004
"""Lines coincide if they nowhere differ by more than this share of the axis."""

STRIPE = 3.0
"""The length of a stripe of a shared line, in line widths."""


@dataclass(frozen=True)
class LineStyle:
    """How a line is drawn: its style, its dashes with their offset in line widths, and its rank from the back."""

    line: Line
    style: Style
    dash: Dash
    offset: float
    rank: int

    @property
    def on_axes(self) -> dict[str, Any]:
        """The options of the line for matplotlib."""
        return self._drawn(self.offset, self.dash)

    @property
    def in_label(self) -> dict[str, Any]:
        """The options of the sample beside its name: in its own dashes, also if the line coincides with others."""
        return {**self._drawn(0, self.style.dash), "markevery": [1]}

    def _drawn(self, offset: float, dash: Dash) -> dict[str, Any]:
        return {
            "color": self.style.colour,
            "linewidth": LINE_WIDTH,
            "linestyle": (offset, dash) if dash else "solid",
            **marker(self.style, max(MARKER_SIZE - MARKER_STEP * self.rank, MARKER_SIZE / 2), 1.1),
            "zorder": 3 + self.rank / 100,
        }


def line_styles(picture: Picture, ends: tuple[float, float]) -> list[LineStyle]:
    """Return how each line is drawn: solid ones first, coinciding ones as stripes of one line."""
    lines = sorted(picture.lines, key=lambda line: bool(_style_of(line).dash))
    styles: list[LineStyle] = []
    for members in _coincident(lines, ends):
        for place, line in enumerate(members):
            style_of_line, shared = _style_of(line), len(members) > 1
            dash = (STRIPE, STRIPE * (len(members) - 1)) if shared else style_of_line.dash
            styles.append(LineStyle(line, style_of_line, dash, -STRIPE * place if shared else 0.0, len(styles)))
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
    return style(picture.baseline).colour if picture.baseline else GREY


def _style_of(line: Line) -> Style:
    """Return the implementation's style; under another allocator than the usual one dotted, with hollow markers."""
    own = style(line.implementation)
    usual = line.allocator in ("", COLUMNS["allocator"].usual)
    return own if usual else replace(own, dash=DOTTED, hollow=True)


def _coincident(lines: Sequence[Line], ends: tuple[float, float]) -> list[list[Line]]:
    room = SAME * math.log(ends[1] / ends[0])
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
