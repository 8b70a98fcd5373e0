"""The sheet of a picture: its size, title, axes, ticks and footnote. All lengths are in inches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.show import scales, units
from bench.show.captions import facts, notes, reference, title, x_label, y_label
from bench.show.lettering import FONT, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE, text_width, wrapped
from bench.show.pictures import LATENCY, MEMORY, SPEEDUP, Picture

EDGE, LEFT, FOOT = 0.2, 1.0, 0.56
AXES_WIDTH, AXES_HEIGHT = 5.4, 3.5
LABEL_START = 0.62
"""From the axes to the words of a label: room for the leader and a sample of the line."""

LABEL_GAP, ROW_HEIGHT, STRIP_GAP = 0.185, 0.2, 0.12
TITLE_LINE, NOTE_LINE = 0.21, 0.19
TICK_GAP = 0.08

INK, GREY, RULE = "#1a1a1a", "#666666", "#d9d9d9"

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

TICKS = {LATENCY: scales.decimal, SPEEDUP: scales.decimal, MEMORY: scales.binary}
WORDS = {LATENCY: units.seconds, SPEEDUP: units.ratio, MEMORY: units.size}


@dataclass(frozen=True)
class Sheet:
    """A figure with its axes: `main` for the values, `strip` below it for what failed, None where nothing did."""

    figure: Figure
    main: Axes
    strip: Axes | None

    @property
    def bottom(self) -> Axes:
        """The axes that carry the ticks of the horizontal axis."""
        return self.strip or self.main


@dataclass(frozen=True)
class Layout:
    """The width of a sheet, and the heights of what stands on it from top to bottom."""

    width: float
    head: float
    main: float
    gap: float
    strip: float
    foot: float

    @property
    def height(self) -> float:
        """The height of the sheet."""
        return self.head + self.main + self.gap + self.strip + self.foot


def sheet(picture: Picture) -> Sheet:
    """Return the empty sheet of a picture: everything but its lines, labels and failures."""
    width = _width(picture)
    subtitle = wrapped(facts(picture), width - 2 * EDGE)
    footnotes = wrapped(notes(picture), width - 2 * EDGE, SMALL_SIZE)
    layout = _layout(picture, width, len(subtitle), len(footnotes))
    made = _axes(layout, Figure(figsize=(layout.width, layout.height), facecolor="white"))
    _write(made.figure, title(picture), subtitle, footnotes)
    _horizontal(made, picture)
    _vertical(made.main, picture)
    return made


def _width(picture: Picture) -> float:
    lines, failures = (
        (line.label for line in picture.lines),
        (each.implementation for each in picture.failures),
    )
    label = max(text_width(name) for name in (*lines, *failures, reference(picture)))
    return LEFT + AXES_WIDTH + LABEL_START + label + EDGE


def _layout(picture: Picture, width: float, titles: int, footnotes: int) -> Layout:
    return Layout(
        width=width,
        head=EDGE + TITLE_LINE * (titles + 1.6),
        main=max(AXES_HEIGHT, LABEL_GAP * (len(picture.lines) + 2)),
        gap=STRIP_GAP if picture.failures else 0.0,
        strip=ROW_HEIGHT * len(picture.failures),
        foot=FOOT + NOTE_LINE * footnotes,
    )


def _axes(layout: Layout, figure: Figure) -> Sheet:
    def place(bottom: float, height: float) -> Axes:
        across, up = LEFT / layout.width, bottom / layout.height
        return figure.add_axes((across, up, AXES_WIDTH / layout.width, height / layout.height))

    main = place(layout.foot + layout.strip + layout.gap, layout.main)
    return Sheet(figure, main, place(layout.foot, layout.strip) if layout.strip else None)


def _write(figure: Figure, heading: str, subtitle: Sequence[str], notes: Sequence[str]) -> None:
    width, height = figure.get_size_inches()
    left = EDGE / width
    figure.text(left, 1 - EDGE / height, heading, size=TITLE_SIZE, weight="bold", va="top")
    for number, text in enumerate(subtitle):
        down = EDGE + TITLE_LINE * (number + 1.25)
        figure.text(left, 1 - down / height, text, size=TEXT_SIZE, color=GREY, va="top")
    for number, text in enumerate(reversed(notes)):
        figure.text(left, (0.08 + NOTE_LINE * number) / height, text, size=SMALL_SIZE, color=GREY, va="bottom")


def _horizontal(made: Sheet, picture: Picture) -> None:
    ends = scales.padded(picture.xs[0], picture.xs[-1])
    for axes in filter(None, (made.main, made.strip)):
        axes.set_xscale("log")
        axes.set_xlim(ends)
        axes.set_xticks(picture.xs, labels=[])
        axes.set_xticks([], minor=True)
    made.bottom.set_xticks(picture.xs, labels=_tick_labels(picture.xs, ends))
    made.bottom.set_xlabel(x_label(picture))
    if made.strip:
        made.main.tick_params(axis="x", length=0)


def _tick_labels(xs: Sequence[int], ends: tuple[float, float]) -> list[str]:
    # the ends are named first, then from the right: there the values of a sweep are far apart
    scale = AXES_WIDTH / math.log(ends[1] / ends[0])
    widths = [text_width(f"{x}") + TICK_GAP for x in xs]
    last = len(xs) - 1
    written = scales.spaced([math.log(x) * scale for x in xs], widths, [last, 0, *range(last - 1, 0, -1)])
    return [f"{x}" if index in written else "" for index, x in enumerate(xs)]


def _vertical(axes: Axes, picture: Picture) -> None:
    ones = (1.0,) if picture.quantity is SPEEDUP else ()
    ends = scales.limits(
        [*ones, *(value for line in picture.lines for value in line.values)],
        [low for line in picture.lines for low in line.lows],
        [high for line in picture.lines for high in line.highs],
    )
    ticks = TICKS[picture.quantity](*ends)
    axes.set_yscale("log")
    axes.set_ylim(ends)
    axes.set_yticks(ticks, labels=[WORDS[picture.quantity](tick, trim=True) for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_ylabel(y_label(picture))
