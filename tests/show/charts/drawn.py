"""What is drawn in a picture."""

import functools
import itertools
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

from bench.show.charts.catalogue import drawn
from bench.show.charts.sheet import Picture


def made(pictures: Iterator[Picture]) -> list[Picture]:
    """Return pictures as the suite draws them."""
    return [*drawn(pictures)]


def main(of: Picture) -> Axes:
    """Return the axes."""
    return of.figure.axes[0]


def texts(of: Picture) -> list[Text]:
    """Return all visible text of a picture, in its place."""
    return _drawn(of.figure)


@functools.lru_cache(maxsize=16)
def _drawn(figure: Figure) -> list[Text]:
    figure.draw_without_rendering()
    every = [each for each in figure.findobj(Text) if isinstance(each, Text)]
    # Matplotlib has ticks beyond an axis too, and doesn't draw them
    beyond = {
        tick.label1
        for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis)
        for tick in axis.get_major_ticks()
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    return [each for each in every if each.get_text() and each.get_visible() and each not in beyond]


def words(of: Picture) -> str:
    """Return all visible text of a picture in one."""
    return "\n".join(text.get_text() for text in texts(of))


def ends(of: Picture) -> list[str]:
    """Return the names at the ends of lines, from the lowest up."""
    every = texts(of)
    return [
        each.get_text()
        for each in sorted(main(of).texts, key=lambda text: Text.get_window_extent(text).y0)
        if each in every
    ]


def overlaps(of: Picture) -> list[tuple[str, str]]:
    """Return pairs of texts that lie on each other."""
    # without the lines of names to their ends
    boxes = [(each.get_text(), Text.get_window_extent(each).padded(-1)) for each in texts(of)]
    return [(one[0], two[0]) for one, two in itertools.combinations(boxes, 2) if one[1].overlaps(two[1])]


def series(axes: Axes) -> dict[str, list[tuple[float, float]]]:
    """Return the places of each named line or series of marks that has some."""
    named = {str(each.get_label()): each for each in axes.lines}
    named |= {str(each.get_label()): each.lines[0] for each in axes.containers if isinstance(each, ErrorbarContainer)}
    places = {name: np.asarray(line.get_xydata(), dtype=float).tolist() for name, line in named.items()}
    known = {name: [(x, y) for x, y in at if x == x and y == y] for name, at in places.items()}
    return {name: at for name, at in known.items() if not name.startswith("_")}
