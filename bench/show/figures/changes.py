"""The picture of a comparison: every judged row with its interval, slowest first. Lengths are in inches."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from bench.show.comparison.report import STAMP, Report, change, counts, point_words, shared, varying_columns
from bench.show.figures import log_axis
from bench.show.figures.line_axes import ROW_HEIGHT
from bench.show.figures.page import EDGE, GREY, INK, NOTE_LINE, TITLE_LINE, Drawing, head_height, styled, write
from bench.show.figures.text_metrics import SMALL_SIZE, TITLE_SIZE, text_width, wrapped
from bench.show.palette import ink
from bench.show.rows import Row
from bench.stats.limits import INCONCLUSIVE
from bench.store import units


@dataclass(frozen=True)
class Mark:
    """How a verdict is drawn: its colour as `#rrggbb`, and a matplotlib marker."""

    colour: str
    marker: str
    hollow: bool = False


MARKS = {
    "slower": Mark("#d55e00", "<"),
    INCONCLUSIVE: Mark("#777777", "o", hollow=True),
    "equivalent": Mark("#009e73", "s"),
    "faster": Mark("#0072b2", ">"),
}
"""The verdicts of rows that are judged, in colours of Okabe and Ito (2008), which the colour-blind tell apart."""

X_LABEL = "← slower        change        faster →"

AXES_WIDTH = 4.6
PAD, GAP = 0.12, 0.28
"""Between text and axes, and between columns of text."""

SCALE_ROOM = 0.24
"""The room for tick labels, above and below the axes."""

MARKER_SIZE, BAR_WIDTH, CAP = 5.0, 1.3, 2.4
SHADE, DASHES = "#e3e3e3", (0, (3, 3))
SAMPLE = 0.16
"""The room for a mark in the legend."""

TICK_GAP = 0.11
"""The least distance of two ticks as a share of the axis, so that labels such as +150% don't touch."""

WIDE = 3.0
"""An axis that spans more than this factor has ticks at round ratios, a shorter one at round percentages."""


@dataclass(frozen=True)
class Label:
    """The texts beside a row."""

    implementation: str
    point: str
    verdict: str
    colour: str


@dataclass(frozen=True)
class Layout:
    """The rows of a picture from top to bottom, the texts around them, and the room for these."""

    rows: tuple[Row, ...]
    labels: tuple[Label, ...]
    title: str
    subtitle: tuple[str, ...]
    alarm: tuple[str, ...]
    notes: tuple[str, ...]
    left: float
    width: float

    @property
    def head(self) -> float:
        """The height above the axes."""
        return head_height(len(self.subtitle) + len(self.alarm)) + 1.4 * TITLE_LINE + SCALE_ROOM

    @property
    def tall(self) -> float:
        """The height of the axes."""
        return ROW_HEIGHT * (len(self.rows) + 0.4)

    @property
    def foot(self) -> float:
        """The height below the axes."""
        return 2.4 * SCALE_ROOM + NOTE_LINE * len(self.notes) + EDGE / 2

    @property
    def height(self) -> float:
        """The height of the picture."""
        return self.head + self.tall + self.foot


def figures(report: Report) -> Iterator[Drawing]:
    """Yield the picture of a comparison, nothing if no row is judged."""
    picture = figure(report)
    if picture is not None:
        yield "changes", picture


def figure(report: Report) -> Figure | None:
    """Return the picture as a figure, None if no row is judged."""
    rows = [row for row in report.rows if row["verdict"] in MARKS and row["change"] is not None]
    with styled():
        return _figure(_layout(report, rows), report) if rows else None


def _layout(report: Report, rows: Sequence[Row]) -> Layout:
    rows = sorted(rows, key=lambda row: float(row["change"]))
    columns = varying_columns(report.rows)
    labels = tuple(_label(row, columns) for row in rows)
    title = f"NEW against BASE: change of the speed-up over {report.baseline or 'the baseline'}"
    left = EDGE + _widest(label.implementation for label in labels) + PAD
    left += _widest(label.point for label in labels) + (GAP if any(label.point for label in labels) else 0)
    beside = left + AXES_WIDTH + PAD + _widest(label.verdict for label in labels)
    above = EDGE + max(text_width(title, TITLE_SIZE, bold=True), _widest(report.unlike, bold=True))
    width = max(beside, above) + EDGE
    room = width - 2 * EDGE
    return Layout(
        rows=tuple(rows),
        labels=labels,
        title=title,
        subtitle=tuple(wrapped(shared(report.rows).split(" · "), room)),
        alarm=tuple(wrapped([STAMP, *report.unlike], room, bold=True)) if report.unlike else (),
        notes=tuple(wrapped(_notes(report, rows), room, SMALL_SIZE)),
        left=left,
        width=width,
    )


def _label(row: Row, columns: set[str]) -> Label:
    verdict = row["verdict"]
    return Label(
        row["implementation"], point_words(row, columns), f"{verdict} {change(row)}", ink(MARKS[verdict].colour)
    )


def _notes(report: Report, rows: Sequence[Row]) -> list[str]:
    others = [row for row in report.rows if row["verdict"] not in MARKS or row["change"] is None]
    notes = [
        f"shaded: the margin of {units.percent(report.limits.margin, trim=True)}",
        f"dashed: the bounds of equivalence, {units.percent(report.limits.bound, trim=True)}",
        "bar: 95 % interval over processes; without a cap it goes on beyond the axis",
    ]
    if any(row["change_low"] is None for row in rows):
        notes.append("mark without a bar: too few processes for an interval")
    return [*notes, *([f"not drawn: {counts(others)}"] if others else [])]


def _figure(layout: Layout, report: Report) -> Figure:
    figure = Figure(figsize=(layout.width, layout.height), facecolor="white")
    size = (
        layout.left / layout.width,
        layout.foot / layout.height,
        AXES_WIDTH / layout.width,
        layout.tall / layout.height,
    )
    axes = figure.add_axes(size)
    _frame(axes, layout, report)
    for verdict, mark in MARKS.items():
        _draw_marks(axes, layout, verdict, mark)
    for place, label in enumerate(layout.labels):
        _write_beside(axes, (EDGE - layout.left) / AXES_WIDTH, place, label.implementation, INK)
        _write_beside(axes, -PAD / AXES_WIDTH, place, label.point, GREY, side="right")
        _write_beside(axes, 1 + PAD / AXES_WIDTH, place, label.verdict, label.colour)
    write(figure, layout.title, layout.subtitle, layout.notes, layout.alarm)
    _legend(figure, layout)
    return figure


def _frame(axes: Axes, layout: Layout, report: Report) -> None:
    """Draw the axes with the margin shaded and the bounds of equivalence dashed."""
    margin, bound = 1 + report.limits.margin, 1 + report.limits.bound
    low, high = _ends(layout.rows, bound)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(len(layout.rows) - 0.3, -0.7)
    axes.set_yticks(range(len(layout.rows)), labels=[])
    axes.tick_params(axis="y", length=0)
    ticks = _ticks(low, high)
    axes.set_xticks(ticks, labels=[_percentage(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.tick_params(axis="x", labeltop=True)  # a tall picture is read from both ends
    nothing = math.log(1 / low) / math.log(high / low)
    axes.set_xlabel(X_LABEL, x=min(max(nothing, 0.25), 0.75))  # about the place of no change, and not over an edge
    axes.spines["left"].set_visible(False)
    axes.axvspan(1 / margin, margin, color=SHADE, linewidth=0, zorder=0.5, gid="margin")
    for end in (1 / bound, bound):
        axes.axvline(end, color=GREY, linewidth=0.7, linestyle=DASHES, zorder=1.5, gid="bound")
    axes.axvline(1, color=GREY, linewidth=0.9, zorder=1.5)


def _ends(rows: Sequence[Row], bound: float) -> tuple[float, float]:
    return log_axis.limits(
        [1 / bound, bound, *(row["change"] for row in rows)],
        [_number(row["change_low"]) for row in rows],
        [_number(row["change_high"]) for row in rows],
    )


def _ticks(low: float, high: float) -> list[float]:
    if high / low > WIDE:
        return log_axis.ratios(low, high, TICK_GAP)
    locator = MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10])
    ticks = (1 + float(percent) / 100 for percent in locator.tick_values(100 * (low - 1), 100 * (high - 1)))
    return [tick for tick in ticks if low <= tick <= high]


def _percentage(ratio: float) -> str:
    percent = round(100 * (ratio - 1), 3)
    return f"{percent:+g}%" if percent else "0"


def _draw_marks(axes: Axes, layout: Layout, verdict: str, mark: Mark) -> None:
    places = [place for place, row in enumerate(layout.rows) if row["verdict"] == verdict]
    if not places:
        return
    rows = [layout.rows[place] for place in places]
    reach = [
        [row["change"] - _number(row["change_low"]) for row in rows],
        [_number(row["change_high"]) - row["change"] for row in rows],
    ]
    container = axes.errorbar(
        [row["change"] for row in rows],
        places,
        xerr=reach,
        fmt=mark.marker,
        color=mark.colour,
        elinewidth=BAR_WIDTH,
        capsize=CAP,
        zorder=3,
        **_marker_options(mark),
    )
    container[0].set_gid(f"verdict {verdict}")


def _marker_options(mark: Mark) -> dict[str, Any]:
    return {
        "markersize": MARKER_SIZE,
        "markerfacecolor": "white" if mark.hollow else mark.colour,
        "markeredgecolor": mark.colour,
        "markeredgewidth": 1.2,
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _write_beside(axes: Axes, across: float, place: int, text: str, colour: str, side: str = "left") -> None:
    where_to = axes.get_yaxis_transform()
    axes.text(across, place, text, transform=where_to, color=colour, ha=side, va="center_baseline")


def _legend(figure: Figure, layout: Layout) -> None:
    """Write the verdicts in use with their marks, in one line above the axes."""
    across, up = EDGE, 1 - (layout.head - SCALE_ROOM - TITLE_LINE) / layout.height
    for verdict, mark in MARKS.items():
        number = sum(row["verdict"] == verdict for row in layout.rows)
        if not number:
            continue
        place = [(across + SAMPLE / 2) / layout.width]
        figure.add_artist(Line2D(place, [up], linestyle="none", marker=mark.marker, **_marker_options(mark)))
        text = f"{number} {verdict}"
        figure.text((across + SAMPLE + PAD / 2) / layout.width, up, text, color=ink(mark.colour), va="center_baseline")
        across += SAMPLE + PAD / 2 + text_width(text) + GAP


def _widest(words: Iterable[str], *, bold: bool = False) -> float:
    return max((text_width(text, bold=bold) for text in words), default=0.0)
