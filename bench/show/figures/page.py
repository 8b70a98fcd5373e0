"""What all pictures share: style, page, axes, text around and beside them, and writing of files.

Lengths are in inches.
"""

import functools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import style as mpl_style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Bbox

from bench.plan.case import Point
from bench.show.figures import layout
from bench.show.palette import ink
from bench.show.rows import Row, devices
from bench.show.text import counted, parts
from bench.stats.estimates import Array
from bench.store.profile import Profile
from impls.catalogue import Dash, Style

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
TITLE_LINE = 0.17
TICK_GAP = 0.08
"""The least gap between the labels of two ticks."""

LEFT, FOOT = 0.8, 0.55
"""From the lowest axes to the left end of all text, and down to the notes: the room for labels of axes."""

AXES_WIDTH, AXES_HEIGHT, TEXT_WIDTH = 5.4, 3.5, 7.6

SAMPLE, LABEL_START = (1.033, 1.068, 1.104), 1.115
"""Beside axes, in their widths: a line sample's ends and its middle, and the start of the text of a label."""

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
    heading: str, facts: Sequence[str], notes: Sequence[str], panels: Sequence[float], gap: float = 0.0
) -> Figure:
    """Return a figure of panels of these heights from top to bottom, and all text above and below them.

    The heading comes first, then the facts; the notes are at the foot. All but the heading is wrapped.
    The figure is as large as the panels with the gaps between them; a file is larger, as far as something is drawn.
    """
    height, lines = sum(panels) + gap * (len(panels) - 1), wrapped(facts, TEXT_WIDTH)
    figure = Figure(figsize=(AXES_WIDTH, height), facecolor="white")
    grid = {"left": 0, "right": 1, "bottom": 0, "top": 1, "hspace": gap * len(panels) / sum(panels)}
    figure.subplots(len(panels), sharex=True, gridspec_kw={**grid, "height_ratios": panels})
    footnotes = "\n".join(wrapped(notes, TEXT_WIDTH, SMALL_SIZE))
    above, left = EDGE + TITLE_LINE * (len(lines) + 0.4), -LEFT / AXES_WIDTH
    figure.text(left, 1 + above / height, heading, size=TITLE_SIZE, weight="bold", va="bottom")
    figure.text(left, 1 + EDGE / height, "\n".join(lines), color=GREY, va="bottom")
    figure.text(left, -FOOT / height, footnotes, size=SMALL_SIZE, color=GREY, va="top", linespacing=1.6)
    return figure


def set_places(figure: Figure, places: Sequence[int], label: str) -> None:
    """Give all panels of a figure a logarithmic scale around some places, with ticks at the lowest panel alone.

    A number without room is left out: the ends come first, then the others from the right, where the distances of a
    sweep's places are long.
    """
    axes = figure.axes[-1]
    axes.set(xscale="log", xlim=layout.padded(places[0], places[-1]), xlabel=label)
    axes.set_xticks(places, labels=[*map(str, places)])
    axes.minorticks_off()
    for each in figure.axes:
        each.label_outer(remove_inner_ticks=True)
    first, *others = axes.get_xticklabels()
    written: list[Bbox] = []
    for number in (*others[:-2:-1], first, *others[-2::-1]):
        box = number.get_window_extent().padded(TICK_GAP / 2 * figure.dpi)
        number.set_visible(not any(map(box.overlaps, written)))
        written += [box] if number.get_visible() else []


def write_beside(axes: Axes, place: float, text: str, sample: Mapping[str, Any]) -> None:
    """Write text right of axes, in a readable shade of the colour of a sample of a line or mark, which is beside it.

    The place is a share of the height of the axes.
    """
    options: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
    axes.plot(SAMPLE, [place] * len(SAMPLE), **{**sample, "markevery": [1]}, **options)
    axes.text(
        LABEL_START, place, text, color=ink(sample["color"]), va="center_baseline", gid=f"label {text}", **options
    )


def in_axes(axes: Axes, points: Sequence[tuple[float, float]]) -> Array:
    """Return where points of the data's scale stand, in shares of the width and height of axes: [points, 2]."""
    return np.asarray((axes.transData - axes.transAxes).transform(points))


def linestyle(dash: Dash, offset: float = 0.0) -> tuple[float, Dash] | str:
    """Return matplotlib's style of a line with these dashes, which begin at an offset."""
    return (offset, dash) if dash else "solid"


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
    metadata = {"Date": None} if file.suffix == ".svg" else None
    with styled():
        figure.savefig(file, dpi=dpi, metadata=metadata, bbox_inches="tight", pad_inches=EDGE)


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
    return f"means over {counted([each.calls for each in profiles], 'call')} under the profiler"
