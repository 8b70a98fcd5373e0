"""The axes of a line picture, with its size, title, ticks and footnotes. Lengths are in inches."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.show.figures import log_axis
from bench.show.figures.line_captions import facts, notes, reference, title, x_label, y_label
from bench.show.figures.line_data import Picture
from bench.show.figures.page import EDGE, NOTE_LINE, head_height, tick_labels, write
from bench.show.figures.text_metrics import SMALL_SIZE, text_width, wrapped
from bench.store import units
from bench.store.metrics import Unit

LEFT, FOOT = 1.0, 0.56
AXES_WIDTH, AXES_HEIGHT = 5.4, 3.5
LABEL_START = 0.62
"""From the axes to the text of a label: the room for the leader and a sample of the line."""

LABEL_GAP, ROW_HEIGHT, STRIP_GAP = 0.185, 0.2, 0.12


@dataclass(frozen=True)
class Panels:
    """A figure with its axes: `main` for values, `strip` below it for failures, None without any."""

    figure: Figure
    main: Axes
    strip: Axes | None

    @property
    def bottom(self) -> Axes:
        """The axes that carry the ticks of the horizontal axis."""
        return self.strip or self.main


@dataclass(frozen=True)
class Layout:
    """The width of a picture, and the heights of its parts from top to bottom."""

    width: float
    head: float
    main: float
    gap: float
    strip: float
    foot: float

    @property
    def height(self) -> float:
        """The height of the picture."""
        return self.head + self.main + self.gap + self.strip + self.foot


def empty_panels(picture: Picture) -> Panels:
    """Return the axes of a picture with everything but its lines, labels and failures."""
    width = _width(picture)
    subtitle = wrapped(facts(picture), width - 2 * EDGE)
    footnotes = wrapped(notes(picture), width - 2 * EDGE, SMALL_SIZE)
    layout = _layout(picture, width, len(subtitle), len(footnotes))
    panels = _axes(layout, Figure(figsize=(layout.width, layout.height), facecolor="white"))
    write(panels.figure, title(picture), subtitle, footnotes)
    _horizontal(panels, picture)
    _vertical(panels.main, picture)
    return panels


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
        head=head_height(titles),
        main=max(AXES_HEIGHT, LABEL_GAP * (len(picture.lines) + 2)),
        gap=STRIP_GAP if picture.failures else 0.0,
        strip=ROW_HEIGHT * len(picture.failures),
        foot=FOOT + NOTE_LINE * footnotes,
    )


def _axes(layout: Layout, figure: Figure) -> Panels:
    def place(bottom: float, height: float) -> Axes:
        across, up = LEFT / layout.width, bottom / layout.height
        return figure.add_axes((across, up, AXES_WIDTH / layout.width, height / layout.height))

    main = place(layout.foot + layout.strip + layout.gap, layout.main)
    return Panels(figure, main, place(layout.foot, layout.strip) if layout.strip else None)


def _horizontal(panels: Panels, picture: Picture) -> None:
    ends = log_axis.padded(picture.xs[0], picture.xs[-1])
    for axes in filter(None, (panels.main, panels.strip)):
        axes.set_xscale("log")
        axes.set_xlim(ends)
        axes.set_xticks(picture.xs, labels=[])
        axes.set_xticks([], minor=True)
    panels.bottom.set_xticks(picture.xs, labels=tick_labels(picture.xs, ends, AXES_WIDTH))
    panels.bottom.set_xlabel(x_label(picture))
    if panels.strip:
        panels.main.tick_params(axis="x", length=0)


def _vertical(axes: Axes, picture: Picture) -> None:
    ones = (1.0,) if picture.quantity.axis.relative else ()
    ends = log_axis.limits(
        [*ones, *(value for line in picture.lines for value in line.values)],
        [low for line in picture.lines for low in line.lows],
        [high for line in picture.lines for high in line.highs],
    )
    unit = picture.quantity.metric.unit
    round_numbers = log_axis.binary if unit is Unit.BYTES else log_axis.decimal
    ticks = log_axis.ratios(*ends) if picture.quantity.axis.relative else round_numbers(*ends)
    axes.set_yscale("log")
    axes.set_ylim(ends)
    axes.set_yticks(ticks, labels=[units.formatted(tick, unit, trim=True) for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_ylabel(y_label(picture))
