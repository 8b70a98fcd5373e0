"""What is drawn in a picture."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.text import Text

from bench.show.charts.catalogue import drawn
from bench.show.charts.sheet import Picture


def made(pictures: Iterator[Picture]) -> list[Picture]:
    """Return pictures as the suite draws them."""
    return [*drawn(pictures)]


def texts(of: Picture) -> list[Text]:
    """Return all visible text of a picture."""
    of.figure.draw_without_rendering()  # places what depends on the rest
    return [
        each for each in of.figure.findobj(Text) if isinstance(each, Text) and each.get_text() and each.get_visible()
    ]


def words(of: Picture) -> str:
    """Return all visible text of a picture in one."""
    return "\n".join(text.get_text() for text in texts(of))


def series(axes: Axes) -> dict[str, list[tuple[float, float]]]:
    """Return the places of each named line or series of marks that has some, by the first line of its name."""
    named = {str(each.get_label()): each for each in axes.lines}
    named |= {str(each.get_label()): each.lines[0] for each in axes.containers if isinstance(each, ErrorbarContainer)}
    places = {name.partition("\n")[0]: np.asarray(line.get_xydata(), dtype=float) for name, line in named.items()}
    known = {name: [(x, y) for x, y in at.tolist() if x == x and y == y] for name, at in places.items()}
    return {name: at for name, at in known.items() if not name.startswith("_")}
