"""What stands at the edges of the axes: the names of lines beside their ends, and below them what failed."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bench.show.figures.line_axes import AXES_WIDTH, LABEL_GAP, LABEL_START, Sheet
from bench.show.figures.line_captions import reference
from bench.show.figures.line_data import Line, Picture
from bench.show.figures.line_styles import REFERENCE_WIDTH, reference_colour, strokes
from bench.show.figures.placement import spread
from bench.show.figures.text_metrics import SMALL_SIZE
from bench.show.palette import ink, style
from bench.show.rows import UNTRIED

LEADER_WIDTH, LEADER_ALPHA = 0.7, 0.6

LEADER_END, SAMPLE_START, SAMPLE_END = 0.16, 0.18, 0.56
"""From the axes to the end of a leader, and to the ends of a label's sample of its line, in inches."""


def draw_labels(sheet: Sheet, picture: Picture) -> None:
    """Write each line's name beside its end, with a leader and a sample of the line."""
    found = strokes(picture, sheet.main.get_ylim())
    ends = [_end(sheet.main, picture.xs, stroke.line) for stroke in found]
    if label := reference(picture):
        ends.append((AXES_WIDTH, _inches(sheet.main, picture.xs[-1], 1.0)[1]))
    tall = height(sheet.main)
    places = spread([y for _, y in ends], LABEL_GAP, LABEL_GAP / 2, tall)
    for stroke, end, place in zip(found, ends, places, strict=False):
        _leader(sheet.main, end, place, stroke.look.colour)
        _sample(sheet.main, place, stroke.in_label)
        _name(sheet.main, place, stroke.line.label, stroke.look.colour)
    if label:
        colour = reference_colour(picture)
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


def height(axes: Axes) -> float:
    """Return the height of axes in inches."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return axes.get_position().height * float(figure.get_size_inches()[1])


def _symbol(status: str, colour: str) -> dict[str, Any]:
    if status in UNTRIED:
        edge = {"markersize": 5, "markerfacecolor": "white", "markeredgecolor": colour, "markeredgewidth": 1.1}
        return {"linestyle": "none", "marker": "o", **edge}
    edge = {"markersize": 7.5, "markerfacecolor": colour, "markeredgecolor": "white", "markeredgewidth": 0.6}
    return {"linestyle": "none", "marker": "X", **edge}


def _end(axes: Axes, xs: Sequence[int], line: Line) -> tuple[float, float]:
    last = max(index for index, value in enumerate(line.values) if math.isfinite(value))
    return _inches(axes, xs[last], line.values[last])


def _inches(axes: Axes, x: float, y: float) -> tuple[float, float]:
    across, up = axes.transAxes.inverted().transform(axes.transData.transform((x, y)))
    return float(across) * AXES_WIDTH, float(up) * height(axes)


def _leader(axes: Axes, end: tuple[float, float], place: float, colour: str) -> None:
    x, y = end
    look = {"color": colour, "linewidth": LEADER_WIDTH, "alpha": LEADER_ALPHA}
    _beside(axes, [x, AXES_WIDTH, AXES_WIDTH + LEADER_END], [y, y, place], **look)


def _sample(axes: Axes, place: float, look: dict[str, Any]) -> None:
    xs = [AXES_WIDTH + x for x in (SAMPLE_START, (SAMPLE_START + SAMPLE_END) / 2, SAMPLE_END)]
    _beside(axes, xs, [place] * 3, **look)


def _beside(axes: Axes, xs: Sequence[float], ys: Sequence[float], **look: Any) -> None:
    tall = height(axes)
    across, up = [x / AXES_WIDTH for x in xs], [y / tall for y in ys]
    axes.add_line(Line2D(across, up, transform=axes.transAxes, clip_on=False, **look))


def _name(axes: Axes, place: float, name: str, colour: str) -> None:
    axes.text(
        1 + LABEL_START / AXES_WIDTH,
        place / height(axes),
        name,
        transform=axes.transAxes,
        color=ink(colour),
        va="center_baseline",
        gid=f"label {name}",
    )
