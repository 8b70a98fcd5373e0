"""What is drawn on a sheet: lines with their bands, their labels, and the marks of what failed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bench.show.captions import reference
from bench.show.frame import AXES_WIDTH, GREY, LABEL_GAP, LABEL_START, Sheet
from bench.show.labels import spread
from bench.show.lettering import SMALL_SIZE
from bench.show.palette import Dash, Style, ink, style
from bench.show.pictures import Line, Picture
from bench.show.rows import UNTRIED

LINE_WIDTH, LEADER_WIDTH, REFERENCE_WIDTH = 1.8, 0.7, 1.2
MARKER_SIZE, MARKER_STEP = 7.5, 0.5
"""Markers shrink from the first line to the last, so that one behind another can be seen."""

BAND_ALPHA = 0.18

SAME = 0.004
"""Lines that differ by no more than this share of the axis anywhere lie on top of each other."""

STRIPE = 3.0
"""The length of a stripe of a shared line, in line widths."""

LEADER_END, SAMPLE_START, SAMPLE_END = 0.16, 0.18, 0.56
"""From the axes to the end of a leader, and to the ends of a label's sample of its line, in inches."""


@dataclass(frozen=True)
class Stroke:
    """A line as it is drawn: its look, its dashes with their offset in line widths, and its rank from the back."""

    line: Line
    look: Style
    dash: Dash
    offset: float
    rank: int

    @property
    def on_axes(self) -> dict[str, Any]:
        """The line among the others, as matplotlib is told of it."""
        return self._drawn(self.offset, self.dash)

    @property
    def in_label(self) -> dict[str, Any]:
        """The sample of the line beside its name: in its own dashes, also where it shares its place."""
        return {**self._drawn(0, self.look.dash), "markevery": [1]}

    def _drawn(self, offset: float, dash: Dash) -> dict[str, Any]:
        return {
            "color": self.look.colour,
            "linewidth": LINE_WIDTH,
            "linestyle": (offset, dash) if dash else "solid",
            "marker": self.look.marker,
            "markersize": max(MARKER_SIZE - MARKER_STEP * self.rank, MARKER_SIZE / 2),
            "markerfacecolor": "white" if self.look.hollow else self.look.colour,
            "markeredgecolor": self.look.colour,
            "markeredgewidth": 1.1,
            "zorder": 3 + self.rank / 100,
        }


def strokes(picture: Picture, ends: tuple[float, float]) -> list[Stroke]:
    """Return how each line is drawn: solid ones first, those that coincide in stripes of one shared line."""
    lines = sorted(picture.lines, key=lambda line: bool(style(line.implementation).dash))
    found: list[Stroke] = []
    for members in _coincident(lines, ends):
        for place, line in enumerate(members):
            look, shared = style(line.implementation), len(members) > 1
            dash = (STRIPE, STRIPE * (len(members) - 1)) if shared else look.dash
            found.append(Stroke(line, look, dash, -STRIPE * place if shared else 0.0, len(found)))
    return found


def draw_lines(sheet: Sheet, picture: Picture) -> None:
    """Draw every line with its band, and the rule at 1 where the quantity is a ratio."""
    if reference(picture):
        sheet.main.axhline(1, color=_reference_colour(picture), linewidth=REFERENCE_WIDTH, zorder=2.5, gid="reference")
    for stroke in strokes(picture, sheet.main.get_ylim()):
        line = stroke.line
        sheet.main.fill_between(
            picture.xs, line.lows, line.highs, color=stroke.look.colour, alpha=BAND_ALPHA, linewidth=0, zorder=2
        )
        sheet.main.plot(picture.xs, line.values, gid=f"line {line.implementation}", **stroke.on_axes)


def draw_labels(sheet: Sheet, picture: Picture) -> None:
    """Write each line's name beside its end, with a leader and a sample of the line."""
    found = strokes(picture, sheet.main.get_ylim())
    ends = [_end(sheet.main, picture.xs, stroke.line) for stroke in found]
    if label := reference(picture):
        ends.append((AXES_WIDTH, _inches(sheet.main, picture.xs[-1], 1.0)[1]))
    tall = _height(sheet.main)
    places = spread([y for _, y in ends], LABEL_GAP, LABEL_GAP / 2, tall)
    for stroke, end, place in zip(found, ends, places, strict=False):
        _leader(sheet.main, end, place, stroke.look.colour)
        _sample(sheet.main, place, stroke.in_label)
        _name(sheet.main, place, stroke.line.implementation, stroke.look.colour)
    if label:
        colour = _reference_colour(picture)
        _leader(sheet.main, ends[-1], places[-1], colour)
        _sample(sheet.main, places[-1], {"color": colour, "linewidth": REFERENCE_WIDTH})
        _name(sheet.main, places[-1], label, colour)


def draw_failures(sheet: Sheet, picture: Picture) -> None:
    """Mark what failed: a row for each implementation and status, a symbol at each place."""
    if not sheet.strip:
        return
    axes, count = sheet.strip, len(picture.failures)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_yticks(range(count), labels=[failure.status for failure in picture.failures], size=SMALL_SIZE)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for row, failure in enumerate(picture.failures):
        colour, place = style(failure.implementation).colour, _inches(axes, failure.xs[0], row)[1]
        look = _symbol(failure.status, colour)
        gid = f"failure {failure.implementation} {failure.status}"
        axes.plot(failure.xs, [row] * len(failure.xs), gid=gid, clip_on=False, **look)
        _beside(axes, [AXES_WIDTH + (SAMPLE_START + SAMPLE_END) / 2], [place], **look)
        _name(axes, place, failure.implementation, colour)


def _symbol(status: str, colour: str) -> dict[str, Any]:
    if status in UNTRIED:
        edge = {"markersize": 5, "markerfacecolor": "white", "markeredgecolor": colour, "markeredgewidth": 1.1}
        return {"linestyle": "none", "marker": "o", **edge}
    edge = {"markersize": 7.5, "markerfacecolor": colour, "markeredgecolor": "white", "markeredgewidth": 0.6}
    return {"linestyle": "none", "marker": "X", **edge}


def _coincident(lines: Sequence[Line], ends: tuple[float, float]) -> list[list[Line]]:
    room = SAME * math.log(ends[1] / ends[0])
    groups: list[list[Line]] = []
    for line in lines:
        home = next((group for group in groups if _same(group[0], line, room)), None)
        if home is None:
            groups.append([line])
        else:
            home.append(line)
    return groups


def _same(one: Line, other: Line, room: float) -> bool:
    distances = np.abs(np.log(one.values) - np.log(other.values))
    shared = distances[np.isfinite(distances)]
    # two lines that meet in one place only cross there
    return bool(shared.size > 1 and shared.max() <= room)


def _end(axes: Axes, xs: Sequence[int], line: Line) -> tuple[float, float]:
    last = max(index for index, value in enumerate(line.values) if math.isfinite(value))
    return _inches(axes, xs[last], line.values[last])


def _inches(axes: Axes, x: float, y: float) -> tuple[float, float]:
    across, up = axes.transAxes.inverted().transform(axes.transData.transform((x, y)))
    return float(across) * AXES_WIDTH, float(up) * _height(axes)


def _height(axes: Axes) -> float:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return axes.get_position().height * float(figure.get_size_inches()[1])


def _leader(axes: Axes, end: tuple[float, float], place: float, colour: str) -> None:
    x, y = end
    _beside(
        axes, [x, AXES_WIDTH, AXES_WIDTH + LEADER_END], [y, y, place], color=colour, linewidth=LEADER_WIDTH, alpha=0.6
    )


def _sample(axes: Axes, place: float, look: dict[str, Any]) -> None:
    xs = [AXES_WIDTH + x for x in (SAMPLE_START, (SAMPLE_START + SAMPLE_END) / 2, SAMPLE_END)]
    _beside(axes, xs, [place] * 3, **look)


def _beside(axes: Axes, xs: Sequence[float], ys: Sequence[float], **look: Any) -> None:
    tall = _height(axes)
    across, up = [x / AXES_WIDTH for x in xs], [y / tall for y in ys]
    axes.add_line(Line2D(across, up, transform=axes.transAxes, clip_on=False, **look))


def _name(axes: Axes, place: float, name: str, colour: str) -> None:
    axes.text(
        1 + LABEL_START / AXES_WIDTH,
        place / _height(axes),
        name,
        transform=axes.transAxes,
        color=ink(colour),
        va="center_baseline",
        gid=f"label {name}",
    )


def _reference_colour(picture: Picture) -> str:
    return style(picture.baseline).colour if picture.baseline else GREY
