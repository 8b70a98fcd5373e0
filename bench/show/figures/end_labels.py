"""Names beside the ends of lines, with leaders, and the failures. Lengths are in inches."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from bench.show.figures.line_data import Failure, Picture
from bench.show.figures.line_styles import REFERENCE_WIDTH, line_styles, reference_colour
from bench.show.figures.page import (
    AXES_WIDTH,
    LABEL_GAP,
    LABEL_START,
    SMALL_SIZE,
    inches,
    size,
    to_inches,
    write_beside,
)
from bench.show.figures.placement import spread
from bench.show.palette import style
from bench.show.rows import UNTRIED

LEADER: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.6}

LEADER_END, SAMPLES = 0.16, (0.18, 0.37, 0.56)
"""From the axes to the end of a leader, and to both ends and the middle of a label's line sample."""


def draw_labels(axes: Axes, picture: Picture) -> None:
    """Write each line's name beside its end, with a leader line and a sample of the line."""
    labels: list[tuple[tuple[float, float], str, str, dict[str, Any]]] = []
    for each in line_styles(picture, axes.get_ylim()):
        last = max(index for index, value in enumerate(each.line.values) if math.isfinite(value))
        end = picture.xs[last], each.line.values[last]
        labels.append((end, each.line.label, each.style.colour, each.in_label))
    if picture.reference:
        colour = reference_colour(picture)
        sample = {"color": colour, "linewidth": REFERENCE_WIDTH}
        labels.append(((axes.get_xlim()[1], 1.0), picture.reference, colour, sample))
    ends = to_inches(axes, [end for end, *_ in labels])
    places = spread(ends[:, 1].tolist(), LABEL_GAP, LABEL_GAP / 2, size(axes)[1])
    for (_, label, colour, sample), (x, y), place in zip(labels, ends, places, strict=True):
        _beside(axes, [x - AXES_WIDTH, 0, LEADER_END], [y, y, place], color=colour, **LEADER)
        _beside(axes, SAMPLES, [place] * 3, **sample)
        write_beside(axes, LABEL_START, place, label, colour, f"label {label}")


def draw_failures(axes: Axes, failures: Sequence[Failure]) -> None:
    """Mark the failures: a row for each implementation and status, a symbol at each place."""
    axes.set_ylim(len(failures) - 0.4, -0.6)
    axes.set_yticks(range(len(failures)), labels=[failure.status for failure in failures], size=SMALL_SIZE)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for row, failure in enumerate(failures):
        name, colour = failure.implementation, style(failure.implementation).colour
        place = to_inches(axes, [(failure.xs[0], row)])[0, 1]
        options = _symbol(failure.status, colour)
        gid = f"failure {name} {failure.status}"
        axes.plot(failure.xs, [row] * len(failure.xs), gid=gid, clip_on=False, **options)
        _beside(axes, SAMPLES[1:2], [place], **options)
        write_beside(axes, LABEL_START, place, name, colour, f"label {name}")


def _symbol(status: str, colour: str) -> dict[str, Any]:
    untried = status in UNTRIED
    return {
        "linestyle": "none",
        "marker": "o" if untried else "X",
        "markersize": 5 if untried else 7.5,
        "markerfacecolor": "white" if untried else colour,
        "markeredgecolor": colour if untried else "white",
        "markeredgewidth": 1.1 if untried else 0.6,
    }


def _beside(axes: Axes, xs: Sequence[float], ys: Sequence[float], **options: Any) -> None:
    """Draw a line whose places are right of the axes, and above their lower end."""
    axes.plot([AXES_WIDTH + x for x in xs], ys, transform=inches(axes), clip_on=False, **options)
