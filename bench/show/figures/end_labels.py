"""Labels of lines beside their ends, and below the axes the failures."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bench.show.figures.line_axes import AXES_WIDTH, LABEL_GAP, LABEL_START, Panels
from bench.show.figures.line_captions import reference
from bench.show.figures.line_data import Line, Picture
from bench.show.figures.line_styles import REFERENCE_WIDTH, line_styles, reference_colour
from bench.show.figures.placement import spread
from bench.show.figures.text_metrics import SMALL_SIZE
from bench.show.palette import ink, style
from bench.show.rows import UNTRIED

LEADER_WIDTH, LEADER_ALPHA = 0.7, 0.6

LEADER_END, SAMPLE_START, SAMPLE_END = 0.16, 0.18, 0.56
"""From the axes to the end of a leader, and to both ends of a label's line sample, in inches."""


def draw_labels(panels: Panels, picture: Picture) -> None:
    """Write each line's name beside its end, with a leader line and a sample of the line."""
    styles = line_styles(picture, panels.main.get_ylim())
    ends = [_end(panels.main, picture.xs, line_style.line) for line_style in styles]
    if label := reference(picture):
        ends.append((AXES_WIDTH, _inches(panels.main, picture.xs[-1], 1.0)[1]))
    tall = height(panels.main)
    places = spread([y for _, y in ends], LABEL_GAP, LABEL_GAP / 2, tall)
    for line_style, end, place in zip(styles, ends, places, strict=False):
        _leader(panels.main, end, place, line_style.style.colour)
        _sample(panels.main, place, line_style.in_label)
        _name(panels.main, place, line_style.line.label, line_style.style.colour)
    if label:
        colour = reference_colour(picture)
        _leader(panels.main, ends[-1], places[-1], colour)
        _sample(panels.main, places[-1], {"color": colour, "linewidth": REFERENCE_WIDTH})
        _name(panels.main, places[-1], label, colour)


def draw_failures(panels: Panels, picture: Picture) -> None:
    """Mark the failures: a row for each implementation and status, a symbol at each place."""
    if not panels.strip:
        return
    axes, count = panels.strip, len(picture.failures)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_yticks(range(count), labels=[failure.status for failure in picture.failures], size=SMALL_SIZE)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for row, failure in enumerate(picture.failures):
        colour, place = style(failure.implementation).colour, _inches(axes, failure.xs[0], row)[1]
        options = _symbol(failure.status, colour)
        gid = f"failure {failure.implementation} {failure.status}"
        axes.plot(failure.xs, [row] * len(failure.xs), gid=gid, clip_on=False, **options)
        _beside(axes, [AXES_WIDTH + (SAMPLE_START + SAMPLE_END) / 2], [place], **options)
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
    options = {"color": colour, "linewidth": LEADER_WIDTH, "alpha": LEADER_ALPHA}
    _beside(axes, [x, AXES_WIDTH, AXES_WIDTH + LEADER_END], [y, y, place], **options)


def _sample(axes: Axes, place: float, options: dict[str, Any]) -> None:
    xs = [AXES_WIDTH + x for x in (SAMPLE_START, (SAMPLE_START + SAMPLE_END) / 2, SAMPLE_END)]
    _beside(axes, xs, [place] * 3, **options)


def _beside(axes: Axes, xs: Sequence[float], ys: Sequence[float], **options: Any) -> None:
    tall = height(axes)
    across, up = [x / AXES_WIDTH for x in xs], [y / tall for y in ys]
    axes.add_line(Line2D(across, up, transform=axes.transAxes, clip_on=False, **options))


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
