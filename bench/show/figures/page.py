"""What all pictures share: style, heading, footnotes, tick labels of an axis, and writing of files."""

import functools
import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib import style as mpl_style
from matplotlib.figure import Figure

from bench.plan.errors import WrongRequest
from bench.show.figures import log_axis
from bench.show.figures.text_metrics import FONT, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE, text_width

PNG_DPI = 160

LARGEST_PIXELS = 60_000
"""The largest width or height; matplotlib's PNG can't be much larger."""

SUFFIXES = (".png", ".svg")

Drawing = tuple[str, Figure]
"""A picture's name, which is that of its files, and its figure."""

EDGE = 0.2
TITLE_LINE, NOTE_LINE = 0.21, 0.19
TICK_GAP = 0.08
"""All lengths are in inches."""

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
"""The context in which figures are made and saved; it ignores a user's matplotlibrc."""


def head_height(lines: int) -> float:
    """Return the height of a heading with this number of lines under it, in inches."""
    return EDGE + TITLE_LINE * (lines + 1.6)


def write(
    figure: Figure, heading: str, subtitle: Sequence[str], footnotes: Sequence[str], alarm: Sequence[str] = ()
) -> None:
    """Write the heading with the lines under it, those of an alarm first, and the footnotes."""
    width, height = figure.get_size_inches()
    left = EDGE / width
    figure.text(left, 1 - EDGE / height, heading, size=TITLE_SIZE, weight="bold", va="top")
    lines = [(text, ALARM, "bold") for text in alarm] + [(text, GREY, "normal") for text in subtitle]
    for number, (text, colour, weight) in enumerate(lines):
        down = EDGE + TITLE_LINE * (number + 1.25)
        figure.text(left, 1 - down / height, text, size=TEXT_SIZE, color=colour, weight=weight, va="top")
    for number, text in enumerate(reversed(footnotes)):
        figure.text(left, (0.08 + NOTE_LINE * number) / height, text, size=SMALL_SIZE, color=GREY, va="bottom")


def tick_labels(places: Sequence[int], ends: tuple[float, float], width: float) -> list[str]:
    """Return a label for each place of a logarithmic axis, empty if there is no room; `width` is in inches.

    The ends come first, then the others from the right, where the places of a sweep are far apart.
    """
    scale = width / math.log(ends[1] / ends[0])
    last = len(places) - 1
    written = log_axis.spaced(
        [math.log(place) * scale for place in places],
        [text_width(f"{place}") + TICK_GAP for place in places],
        [last, 0, *range(last - 1, 0, -1)],
    )
    return [f"{place}" if index in written else "" for index, place in enumerate(places)]


def save(figure: Figure, name: str, folder: Path) -> list[Path]:
    """Write a figure as PNG and as SVG into a folder, which is made if it is missing, and return both files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}{suffix}" for suffix in SUFFIXES]
    for file in files:
        save_as(figure, file)
    return files


def save_as(figure: Figure, file: Path) -> None:
    """Write a figure in the format that the file's name ends with; raises OSError if it can't be written.

    The same figure gives the same SVG, byte for byte.
    """
    dpi = min(PNG_DPI, LARGEST_PIXELS / max(figure.get_size_inches()))
    with styled():
        figure.savefig(file, dpi=dpi, metadata={"Date": None} if file.suffix == ".svg" else None)


def check_name(file: Path) -> None:
    """Raise WrongRequest for a file name that is not that of a picture."""
    if file.suffix not in SUFFIXES:
        raise WrongRequest(f"the picture {file} must end in {' or '.join(SUFFIXES)}")
