"""A sheet: Matplotlib axes with words around them, and its output as files and in pages.

Lengths are in inches, sizes of text and marks in points.
"""

import functools
import io
import math
import re
import textwrap
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
from scipy.optimize import isotonic_regression

from bench.show.palette import COLOURS, ink, on_both
from bench.show.text import LONGEST_NAME, middle
from impls.catalogue import Style

WIDTH, HEIGHT, EDGE = 3.3, 2.7, 0.06
"""The usual size of axes, small enough for a phone, and the margin around everything."""

DPI, LARGEST_PIXELS = 130, 60_000
"""The resolution of a PNG, and its largest width or height, a limit of Matplotlib."""

LINE, TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 0.17, 11.0, 9.5, 8.5
"""The height of a line of text, and sizes of text."""

LINE_LETTERS, LETTER = 72, 0.085
"""The characters of a line above and below the axes, and the width of a character on an axis."""

BAND_ROOM, AXIS_ROOM, LEAST_SPAN, SHORT = 1.5, 0.06, 1.1, 4.0
"""The factor by which intervals may stretch an axis beyond the values, the margin at its ends as a share of it, the
least factor that it spans, and the factor below which its ticks are linear."""

RC = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # without it a page uses the browser's own
    "font.size": TEXT_SIZE,
    "text.color": COLOURS["ink"],
    "text.parse_math": False,
    "axes.edgecolor": COLOURS["quiet"],
    "axes.facecolor": COLOURS["surface"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": COLOURS["rule"],
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "xtick.color": COLOURS["quiet"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.color": COLOURS["quiet"],
    "ytick.labelcolor": COLOURS["ink"],
    "svg.fonttype": "none",
    "svg.hashsalt": "attention-bench",
}

styled = functools.partial(mpl_style.context, RC, after_reset=True)
"""The context in which figures are made and saved; it ignores a user's matplotlibrc."""


@dataclass(frozen=True)
class Picture:
    """A drawn picture: its name, also of its files, its heading and the fixed facts in it."""

    name: str
    heading: str
    facts: Sequence[str]
    figure: Figure

    def save(self, file: Path) -> None:
        """Write it in the format of the file's suffix, reproducible byte for byte; raises OSError."""
        dpi = min(DPI, LARGEST_PIXELS / max(self.figure.get_size_inches()))
        with styled():
            self.figure.savefig(file, dpi=dpi, metadata={"Date": None} if file.suffix == ".svg" else None,
                bbox_inches="tight", pad_inches=EDGE)  # fmt: skip

    def svg(self) -> str:
        """Return it as an SVG element for a page, with real text and the page's colours.

        Ids begin with a hash of the picture's name, so that the ids of two pictures in a page differ.
        """
        file = io.StringIO()
        with styled(), rc_context({"svg.hashsalt": self.name}):
            self.figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight", pad_inches=EDGE)
        text = file.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", text, flags=re.DOTALL)
        text = re.sub(r'(?<=<g) id="[^"]*"| transform="rotate\(-0 [^"]*"', "", text)
        text = re.sub(r'(?<= (?:d|x|y)=")[^"]*', lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]), text)
        text = re.sub(r"#[0-9a-f]{6}(?=[;\"])", lambda match: on_both(match[0]), text)
        return re.sub(r"\n\s*", "\n", text).strip()


def sheet(height: float = HEIGHT, width: float = WIDTH) -> Axes:
    """Return axes of this size."""
    figure = Figure(figsize=(width, height), facecolor=COLOURS["surface"])
    axes: Axes = figure.subplots()
    figure.subplots_adjust(0, 0, 1, 1)
    return axes


def finished(axes: Axes, name: str, heading: str, facts: Sequence[str], notes: Sequence[str]) -> Picture:
    """Return the picture of a sheet, with heading and facts above the axes and notes below."""
    figure: Any = axes.figure
    wide, high = map(float, figure.get_size_inches())
    drawn = axes.get_tightbbox().transformed(figure.dpi_scale_trans.inverted())  # type: ignore[union-attr]
    left, above = drawn.x0 / wide, max(drawn.y1, high) + 0.1
    for lines, options in ((wrapped(facts), {"color": COLOURS["quiet"], "size": SMALL_SIZE}),
                           ([heading], {"weight": "bold", "size": TITLE_SIZE})):  # fmt: skip
        figure.text(left, above / high, "\n".join(lines), va="bottom", **options)
        above += LINE * len(lines) + 0.05
    figure.text(left, (drawn.y0 - 0.12) / high, "\n".join(wrapped(notes)), size=SMALL_SIZE, color=COLOURS["quiet"],
        va="top")  # fmt: skip
    return Picture(name, heading, facts, figure)


def wrapped(words: Iterable[str], letters: int = LINE_LETTERS) -> list[str]:
    """Return phrases in lines of at most `letters`, separated by dots; a phrase longer than a line is broken."""
    lines: list[str] = []
    for word in words:
        first, *rest = textwrap.wrap(word, letters) or [""]
        if lines and len(lines[-1]) + len(first) + 3 <= letters:
            lines[-1] += f" · {first}"
        else:
            lines.append(first)
        lines += rest
    return lines


def look(of: Style, *, line: bool = True) -> dict[str, Any]:
    """Return Matplotlib's options for a line and the marks of a style."""
    return {
        "color": of.colour,
        "linestyle": ((0, of.dash) if of.dash else "solid") if line else "none",
        "linewidth": 1.5 if line else 1.0,
        "marker": of.marker,
        "markersize": 5.0,
        "markerfacecolor": COLOURS["surface"] if of.hollow else of.colour,
        "markeredgewidth": 1.0,
    }


def marks(axes: Axes, of: Style, xs: Sequence[float], ys: Sequence[float], *, lows: Sequence[float] = (),
          highs: Sequence[float] = (), **options: Any) -> None:  # fmt: skip
    """Draw marks of a style, with horizontal intervals if they have any."""
    errors = [np.subtract(xs, lows), np.subtract(highs, xs)] if lows else None
    axes.errorbar(xs, ys, xerr=errors, elinewidth=1.0, capsize=1.8, **{**look(of, line=False), **options})


def logarithmic(
    axes: Axes, name: str, values: Iterable[float], write: Callable[[float], str], *, lows: Iterable[float] = (),
    highs: Iterable[float] = (), base: int = 10,
) -> None:  # fmt: skip
    """Make an axis logarithmic around values and, within BAND_ROOM, their intervals, with round ticks."""
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


def at_places(axes: Axes, places: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic with a tick at each place unless labels would overlap."""
    logarithmic(axes, "x", places, "{:.0f}".format)
    (low, high), wide = axes.get_xlim(), float(axes.figure.get_size_inches()[0])  # type: ignore[union-attr]
    ticks: list[float] = []
    for place in sorted(places):
        room = LETTER * (len(str(place)) + 1)
        if not ticks or math.log(place / ticks[-1]) / math.log(high / low) * wide > room:
            ticks.append(place)
    axes.xaxis.set_major_locator(FixedLocator(ticks))


def legend(axes: Axes) -> None:
    """Name the series right of the axes."""
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, [middle(each, LONGEST_NAME) for each in labels], loc="upper left", bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0, fontsize=SMALL_SIZE)  # fmt: skip


def name_ends(axes: Axes, ends: Sequence[tuple[str, float, float, str]]) -> None:
    """Write names to the right of the axes beside the ends of their lines, each in its colour, without overlap.

    An end is a name, x, y and a colour. A thin line joins it to its name.
    """
    high = float(axes.figure.get_size_inches()[1])  # type: ignore[union-attr]
    to_axes = axes.transData + axes.transAxes.inverted()
    placed = sorted((float(to_axes.transform(end[1:3])[1]) * high, end) for end in ends)
    # in order, each at least a line above the one below, and as near to its end as possible
    steps = LINE * np.arange(len(placed))
    nearest = isotonic_regression([at for at, _ in placed] - steps).x
    beyond = max(0.0, float(steps[-1]) - high) / 2
    heights = steps + np.clip(nearest, -beyond, high - steps[-1] + beyond)
    for height, (_, (name, x, y, colour)) in zip(heights.tolist(), placed, strict=True):
        axes.annotate(
            name, (x, y), (1.035, height / high), textcoords="axes fraction", va="center", size=SMALL_SIZE,
            color=ink(colour), annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1.0, "shrinkB": 4.0,
                        "relpos": (0, 0.5)},
        )  # fmt: skip
