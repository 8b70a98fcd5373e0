"""What all pictures share: style, page, axes, text around and beside them, and writing of files.

Lengths are in inches.
"""

import functools
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import style as mpl_style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.transforms import BboxTransformTo, ScaledTranslation, Transform
from numpy.typing import NDArray

from bench.plan.case import Point
from bench.show.figures import layout
from bench.show.palette import ink
from bench.show.rows import Row, devices
from bench.show.text import counted, parts
from bench.store.profile import Profile
from impls.catalogue import Style

PNG_DPI = 160

LARGEST_PIXELS = 60_000
"""The largest width or height; matplotlib's PNG can't be much larger."""

Drawing = tuple[str, Figure]
"""A picture's name, which is that of its files, and its figure."""

FONT = "DejaVu Sans"
"""It comes with matplotlib, so a picture looks the same everywhere."""

TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 12.0, 9.0, 7.5
"""Sizes of text in points."""

POINTS = 72
"""Points in an inch."""

EDGE = 0.2
TITLE_LINE, NOTE_LINE = 0.21, 0.19
TICK_GAP = 0.08
"""The least gap between the labels of two ticks."""

LEFT, FOOT = 1.0, 0.56
"""The room for labels beside and below axes."""

AXES_WIDTH, AXES_HEIGHT = 5.4, 3.5

LABEL_START = 0.62
"""From the axes to the text of a label: the room for the leader and a sample of the line."""

LABEL_GAP, ROW_HEIGHT = 0.185, 0.2
"""The heights of a label beside axes, and of a row of marks."""

INK, GREY, RULE, ALARM = "#1a1a1a", "#666666", "#d9d9d9", "#d55e00"

RC = {
    "font.family": FONT,
    "font.size": TEXT_SIZE,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
    "svg.fonttype": "path",
    "svg.hashsalt": "attention-bench",
}

styled = functools.partial(mpl_style.context, RC, after_reset=True)
"""The context in which figures are made and saved, a decorator too; it ignores a user's matplotlibrc."""


def text_width(text: str, size: float = TEXT_SIZE, *, bold: bool = False) -> float:
    """Return the width of a drawn text."""
    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / POINTS


def wrapped(words: Sequence[str], width: float, size: float = TEXT_SIZE, *, bold: bool = False) -> list[str]:
    """Return the words in lines of at most this width, with a dot between words; a word is never broken."""
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} · {word}" if lines else word
        if lines and text_width(longer, size, bold=bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def new_figure(
    heading: str,
    facts: Sequence[str],
    notes: Sequence[str],
    panels: Sequence[float],
    *,
    right: float,
    gap: float = 0.0,
) -> Figure:
    """Return a figure with axes of these heights from top to bottom, and all text around them.

    The heading comes first, then the facts; the notes are at the foot. All but the heading is wrapped.
    `right` is the room between the axes and the edge, `gap` is between axes.
    """
    width = LEFT + AXES_WIDTH + right
    room = width - 2 * EDGE
    lines, footnotes = wrapped(facts, room), wrapped(notes, room, SMALL_SIZE)
    foot = FOOT + NOTE_LINE * len(footnotes)
    height = EDGE + TITLE_LINE * (len(lines) + 1.6) + sum(panels) + gap * (len(panels) - 1) + foot
    figure = Figure(figsize=(width, height), facecolor="white")
    figure.text(EDGE / width, 1 - EDGE / height, heading, size=TITLE_SIZE, weight="bold", va="top")
    for number, text in enumerate(lines):
        up = 1 - (EDGE + TITLE_LINE * (number + 1.25)) / height
        figure.text(EDGE / width, up, text, color=GREY, va="top")
    for number, text in enumerate(reversed(footnotes)):
        up = (0.08 + NOTE_LINE * number) / height
        figure.text(EDGE / width, up, text, size=SMALL_SIZE, color=GREY, va="bottom")
    for number, tall in enumerate(panels):
        bottom = foot + sum(panels[number + 1 :]) + gap * (len(panels) - 1 - number)
        figure.add_axes((LEFT / width, bottom / height, AXES_WIDTH / width, tall / height))
    return figure


def log_scale(axis: Axis, ends: tuple[float, float], ticks: Sequence[float], labels: Sequence[str]) -> None:
    """Give an axis a logarithmic scale with these ticks alone."""
    name = "x" if axis is axis.axes.xaxis else "y"
    axis.axes.set(**{f"{name}scale": "log", f"{name}lim": ends})
    axis.set_ticks(ticks, labels=labels)
    axis.set_ticks([], minor=True)


def share_places(figure: Figure, places: Sequence[int], label: str) -> None:
    """Give all axes of a figure the same logarithmic scale around some places, with labels at the lowest alone."""
    ends = layout.padded(places[0], places[-1])
    for axes in figure.axes:
        log_scale(axes.xaxis, ends, places, [])
        axes.tick_params(axis="x", length=0)
    bottom = figure.axes[-1]
    bottom.set_xticks(places, labels=tick_labels(places, ends))
    bottom.set_xlabel(label)


def tick_labels(places: Sequence[int], ends: tuple[float, float], width: float = AXES_WIDTH) -> list[str]:
    """Return a label for each place of a logarithmic axis, empty if there is no room.

    The ends come first, then the others from the right, where the distances of a sweep's places are long.
    """
    scale = width / math.log(ends[1] / ends[0])
    last = len(places) - 1
    written = layout.spaced(
        [math.log(place) * scale for place in places],
        [text_width(f"{place}") + TICK_GAP for place in places],
        [last, 0, *range(last - 1, 0, -1)],
    )
    return [f"{place}" if index in written else "" for index, place in enumerate(places)]


def size(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of axes."""
    width, height = (axes.transAxes - inches(axes)).transform((1, 1))
    return float(width), float(height)


def inches(axes: Axes) -> Transform:
    """Return the transform of points that are given from the lower left corner of axes."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure.dpi_scale_trans + ScaledTranslation(0, 0, BboxTransformTo(axes.bbox))


def to_inches(axes: Axes, points: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
    """Return points of the data's scale from the lower left corner of axes: [points, 2]."""
    return np.asarray((axes.transData - inches(axes)).transform(points))


def write_beside(axes: Axes, start: float, place: float, text: str, colour: str, gid: str) -> None:
    """Write text in a readable shade of a colour, `start` to the right of axes and `place` above their lower end."""
    across = size(axes)[0] + start
    axes.text(across, place, text, transform=inches(axes), color=ink(colour), va="center_baseline", gid=gid)


def marker(of: Style, size: float, edge_width: float) -> dict[str, Any]:
    """Return matplotlib's options for the marks of a style, of this size and with an edge this wide, in points."""
    return {
        "marker": of.marker,
        "markersize": size,
        "markerfacecolor": "white" if of.hollow else of.colour,
        "markeredgecolor": of.colour,
        "markeredgewidth": edge_width,
    }


def save_as(figure: Figure, file: Path) -> None:
    """Write a figure in the format that the file's name ends with; raises OSError if it can't be written.

    The same figure gives the same SVG, byte for byte.
    """
    dpi = min(PNG_DPI, LARGEST_PIXELS / max(figure.get_size_inches()))
    with styled():
        figure.savefig(file, dpi=dpi, metadata={"Date": None} if file.suffix == ".svg" else None)


def facts(point: Point, rows: Sequence[Row], varying: Collection[str] = ()) -> list[str]:
    """Return the fixed values: layer, device, dtype, mode and so on; `rows` name the device."""
    layer, *words = parts(point, without=("device", *varying))
    names = ", ".join(devices(rows))
    return [layer, f"{point.device} ({names})" if names else point.device, *words]


def origin_rows(profiles: Sequence[Profile]) -> list[Row]:
    """Return the origins of profiles by column, as in rows of the results."""
    return [vars(profile.origin) for profile in profiles]


def calls(profiles: Sequence[Profile]) -> str:
    """Return how many calls were profiled."""
    return f"means over {counted([each.calls for each in profiles], 'call', 'calls')} under the profiler"
