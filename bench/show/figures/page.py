"""A picture as a file: its panels, the words around them, and how they are written.

Lengths are in inches.
"""

import functools
import io
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from matplotlib import rc_context
from matplotlib import style as mpl_style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from bench.show.figures.marks import draw, look
from bench.show.palette import light
from bench.show.picture import Panel, Picture

PNG_DPI = 160

LARGEST_PIXELS = 60_000
"""The largest width or height; matplotlib's PNG can't be much larger."""

FONT = "DejaVu Sans"
"""It comes with matplotlib, so a picture looks the same everywhere."""

TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 12.0, 9.0, 7.5
"""Sizes of text in points."""

POINTS = 72
"""Points in an inch."""

EDGE, TITLED_EDGE, TITLE_LINE = 0.2, 0.42, 0.17
"""The edge around all, the room above panels with titles, and the height of a line above them."""

LEFT, LABEL_ROOM, FOOT, LEGEND = 0.8, 0.2, 0.55, 0.3
"""From the panels to the left end of all text, at least, and beyond the labels of their axes; down to what stands below
them; and the height of a legend."""

TEXT_WIDTH = 7.6
"""The least width at which text is wrapped."""

ACROSS_GAP, DOWN_GAP = 0.42, 0.85
"""The gaps between stacks."""

RC = {
    "font.family": FONT,
    "font.size": TEXT_SIZE,
    "text.color": light("ink"),
    "text.parse_math": False,
    "axes.edgecolor": light("quiet"),
    "axes.labelcolor": light("ink"),
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": light("rule"),
    "grid.linewidth": 0.6,
    "xtick.color": light("quiet"),
    "xtick.labelcolor": light("ink"),
    "ytick.color": light("quiet"),
    "ytick.labelcolor": light("ink"),
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


@styled()
def figure(of: Picture) -> Figure:
    """Return a picture as a figure, as large as its panels; a file is larger, as far as something is drawn."""
    rows = [of.stacks[first : first + of.across] for first in range(0, len(of.stacks), of.across)]
    heights = [max(_height(of, stack) for stack in row) for row in rows]
    columns = min(of.across, len(of.stacks))
    wide = columns * (of.width + ACROSS_GAP) - ACROSS_GAP
    high = sum(heights) + DOWN_GAP * (len(rows) - 1)
    sheet = Figure(figsize=(wide, high), facecolor=light("surface"))
    top = high
    for row, height in zip(rows, heights, strict=True):
        for column, stack in enumerate(row):
            _draw_stack(sheet, of, stack, column * (of.width + ACROSS_GAP), top)
        top -= height + DOWN_GAP
    _write_around(sheet, of)
    return sheet


def save_as(of: Picture, file: Path) -> None:
    """Write a picture in the format that the file's name ends with; raises OSError if it can't be written.

    The same picture gives the same file, byte for byte.
    """
    sheet = figure(of)
    dpi = min(PNG_DPI, LARGEST_PIXELS / max(sheet.get_size_inches()))
    metadata = {"Date": None} if file.suffix == ".svg" else None
    with styled():
        sheet.savefig(file, dpi=dpi, metadata=metadata, bbox_inches="tight", pad_inches=EDGE)


def svg(of: Picture) -> bytes:
    """Return a picture as an SVG, whose texts are texts."""
    file, sheet = io.BytesIO(), figure(of)
    with styled(), rc_context({"svg.fonttype": "none"}):
        sheet.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight", pad_inches=EDGE)
    return file.getvalue()


def _height(of: Picture, stack: Sequence[Panel]) -> float:
    return sum(panel.height for panel in stack) + of.gap * (len(stack) - 1)


def _draw_stack(sheet: Figure, of: Picture, stack: Sequence[Panel], left: float, top: float) -> None:
    wide, high = sheet.get_size_inches()
    for panel in stack:
        axes: Axes = sheet.add_axes(
            (left / wide, (top - panel.height) / high, of.width / wide, panel.height / high), zorder=1
        )
        draw(axes, panel, is_lowest=panel is stack[-1])
        if panel.title:
            axes.set_title(panel.title, loc="left", size=TEXT_SIZE, weight="bold", pad=4)
        top -= panel.height + of.gap


def _write_around(sheet: Figure, of: Picture) -> None:
    """Write the heading, the alarm and the facts above the panels, and the legend and the notes below."""
    wide, high = sheet.get_size_inches()
    labels = [label for stack in of.stacks for panel in stack for label in panel.y.labels]
    left = max([LEFT, *(text_width(label) + LABEL_ROOM for label in labels)])
    width, x = max(TEXT_WIDTH, left + wide), -left / wide
    has_title = any(panel.title for panel in chain(*of.stacks))
    above = TITLED_EDGE if has_title else EDGE
    for words, colour, weight in (
        (wrapped(of.facts, width), "quiet", "normal"),
        (wrapped(of.alarm, width, bold=True), "warning", "bold"),
    ):
        sheet.text(x, 1 + above / high, "\n".join(words), va="bottom", color=light(colour), weight=weight)
        above += TITLE_LINE * (len(words) + 0.4 * bool(words))
    sheet.text(x, 1 + above / high, of.heading, size=TITLE_SIZE, weight="bold", va="bottom")
    below = FOOT
    if of.legend:
        handles = [Line2D([], [], linestyle="none", label=words, **look(own, 6.5)) for words, own in of.legend.items()]
        sheet.legend(handles=handles, ncols=len(handles), frameon=False, handlelength=1.2, loc="upper left",
            bbox_to_anchor=(x, -below / high), borderaxespad=0)  # fmt: skip
        below += LEGEND
    notes = "\n".join(wrapped(of.notes, width, SMALL_SIZE))
    sheet.text(x, -below / high, notes, size=SMALL_SIZE, color=light("quiet"), va="top", linespacing=1.6)
