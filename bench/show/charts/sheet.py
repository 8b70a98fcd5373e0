"""A sheet: Matplotlib axes below and beside each other, with words around them, and how they are written into files.

Lengths are in inches, sizes of text and marks in points.
"""

import functools
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib import style as mpl_style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from bench.show.palette import light
from impls.catalogue import Style

DPI, LARGEST_PIXELS = 160, 60_000
"""The resolution of a PNG, and its largest width or height, which Matplotlib limits."""

EDGE, LINE, TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 0.2, 0.17, 12.0, 9.0, 7.5
"""The edge around all, the height of a line of text, and sizes of text."""

LINE_LETTERS = 110
"""The characters of a line of words above and below the axes."""

BAND_ROOM, AXIS_ROOM, LEAST_SPAN, SHORT = 1.5, 0.06, 1.1, 4.0
"""How far an interval may stretch an axis beyond the values, the room at its ends as a share of it, the factor that it
spans at least, and that below which its ticks are even."""

RC = {
    "font.family": "DejaVu Sans",
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
    "axes.titlesize": TEXT_SIZE,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.color": light("rule"),
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "xtick.color": light("quiet"),
    "xtick.labelcolor": light("ink"),
    "ytick.color": light("quiet"),
    "ytick.labelcolor": light("ink"),
    "svg.hashsalt": "attention-bench",
}

styled = functools.partial(mpl_style.context, RC, after_reset=True)
"""The context in which figures are made and saved; it ignores a user's matplotlibrc."""


@dataclass(frozen=True)
class Picture:
    """A drawn picture: its name, which is that of its files, its heading and what is fixed in it."""

    name: str
    heading: str
    facts: Sequence[str]
    figure: Figure

    def save(self, file: Path) -> None:
        """Write it in the format that the file's name ends with, the same byte for byte; OSError if that fails."""
        dpi = min(DPI, LARGEST_PIXELS / max(self.figure.get_size_inches()))
        with styled():
            self.figure.savefig(file, dpi=dpi, metadata={"Date": None} if file.suffix == ".svg" else None,
                bbox_inches="tight", pad_inches=EDGE)  # fmt: skip

    def svg(self) -> bytes:
        """Return it as an SVG whose texts are texts."""
        file = io.BytesIO()
        with styled(), rc_context({"svg.fonttype": "none"}):
            self.figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight", pad_inches=EDGE)
        return file.getvalue()


def sheet(heights: Sequence[float], *, width: float = 5.4, across: int = 1, gap: float = 0.15) -> list[list[Axes]]:
    """Return axes of these heights below each other, `across` of them beside each other, by columns."""
    whole = sum(heights) + gap * (len(heights) - 1)
    figure = Figure(figsize=(width * across, whole), facecolor=light("surface"))
    grid: Any = figure.subplots(len(heights), across, squeeze=False, sharex="col", height_ratios=heights)
    figure.subplots_adjust(0, 0, 1, 1, hspace=gap * len(heights) / sum(heights), wspace=0.15)
    return [[*column] for column in grid.T]


def finished(
    axes: Axes, name: str, heading: str, facts: Sequence[str], notes: Sequence[str], alarm: Sequence[str] = ()
) -> Picture:
    """Return the picture of a sheet: heading, alarm and facts above the axes, notes below."""
    figure: Any = axes.figure
    high = float(figure.get_size_inches()[1])
    above, left = 0.4, -0.8 / float(figure.get_size_inches()[0])
    for words, colour, weight in ((facts, "quiet", "normal"), (alarm, "warning", "bold")):
        lines = wrapped(words)
        figure.text(left, 1 + above / high, "\n".join(lines), va="bottom", color=light(colour), weight=weight)
        above += LINE * (len(lines) + 0.4 * bool(lines))
    figure.text(left, 1 + above / high, heading, size=TITLE_SIZE, weight="bold", va="bottom")
    figure.text(left, -0.55 / high, "\n".join(wrapped(notes)), size=SMALL_SIZE, color=light("quiet"), va="top",
        linespacing=1.6)  # fmt: skip
    return Picture(name, heading, facts, figure)


def wrapped(words: Sequence[str]) -> list[str]:
    """Return words in lines, with a dot between two; a word is never broken."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) + 3 <= LINE_LETTERS:
            lines[-1] += f" · {word}"
        else:
            lines.append(word)
    return lines


def look(of: Style, size: float = 6.0, *, line: bool = True) -> dict[str, Any]:
    """Return Matplotlib's options for a line and the marks of a style."""
    return {
        "color": of.colour,
        "linestyle": ((0, of.dash) if of.dash else "solid") if line else "none",
        "linewidth": 1.6 if line else 1.1,
        "marker": of.marker,
        "markersize": size,
        "markerfacecolor": light("surface") if of.hollow else of.colour,
        "markeredgewidth": 1.1,
    }


def marks(axes: Axes, of: Style, xs: Sequence[float], ys: Sequence[float], *, along: str = "y",
          lows: Sequence[float] = (), highs: Sequence[float] = (), **options: Any) -> None:  # fmt: skip
    """Draw marks of a style with their intervals along an axis, where they have some."""
    middles = np.array(ys if along == "y" else xs, dtype=float)
    ends = [np.array([math.nan if end is None else end for end in of], dtype=float) for of in (lows, highs)]
    errors = {f"{along}err": [middles - ends[0], ends[1] - middles]} if lows else {}
    axes.errorbar(xs, ys, **errors, elinewidth=1.0, capsize=1.8, **{**look(of, 5.0, line=False), **options})  # type: ignore[arg-type]


def logarithmic(
    axes: Axes, name: str, values: Iterable[float], write: Callable[[float], str], *, lows: Iterable[float] = (),
    highs: Iterable[float] = (), base: int = 10,
) -> None:  # fmt: skip
    """Make an axis logarithmic around values and, as far as that is reasonable, their intervals, with round ticks."""
    known = [value for value in values if value and value > 0 and math.isfinite(value)] or [1.0]
    low = max(min(known) / BAND_ROOM, min([*known, *(end for end in lows if end and end > 0)]))
    high = min(max(known) * BAND_ROOM, max([*known, *(end for end in highs if end and math.isfinite(end))]))
    middle, span = math.sqrt(low * high), max(high / low, LEAST_SPAN)
    reach = math.sqrt(span) * span**AXIS_ROOM
    axes.set(**{f"{name}scale": "log", f"{name}lim": (middle / reach, middle * reach)})
    axis = axes.xaxis if name == "x" else axes.yaxis
    ticks = MaxNLocator(5) if span < SHORT else LogLocator(base, (1.0, 2.0, 5.0) if base == 10 else (1.0,), numticks=8)
    axis.set_major_locator(ticks)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def at_places(axes: Axes, places: Sequence[float], write: Callable[[Any], str] = str) -> None:
    """Make the horizontal axis logarithmic with a tick at each place."""
    logarithmic(axes, "x", places, write)
    axes.xaxis.set_major_locator(FixedLocator([*places]))


def named_beside(axes: Axes) -> None:
    """Name the series right of the axes."""
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
