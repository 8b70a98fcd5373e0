"""The picture of a comparison: every judged row with its interval, slowest first. Lengths are in inches."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.show.comparison.report import STAMP, Report, change, counts
from bench.show.figures import log_axis, page
from bench.show.palette import ink
from bench.show.rows import Row
from bench.stats.limits import INCONCLUSIVE
from bench.stats.replicates import Array
from bench.store import units
from impls.catalogue import SOLID, Style

MARKS = {
    "slower": Style("#d55e00", SOLID, "<"),
    INCONCLUSIVE: Style("#777777", SOLID, "o", hollow=True),
    "equivalent": Style("#009e73", SOLID, "s"),
    "faster": Style("#0072b2", SOLID, ">"),
}
"""The verdicts of rows that are judged, in colours of Okabe and Ito (2008), which the colour-blind tell apart."""

X_LABEL = "← slower        change        faster →"

AXES_WIDTH = 4.6
PAD, GAP = 0.12, 0.28
"""Between text and axes, and between columns of text."""

SCALE_ROOM = 0.24
"""The room for tick labels, above and below the axes."""

MARKER = 5.0, 1.2
"""The size of a mark and the width of its edge, in points."""

BAR_WIDTH, CAP = 1.3, 2.4
SHADE, DASHES = "#e3e3e3", (0, (3, 3))
SAMPLE = 0.16
"""The room for a mark in the legend."""

TICK_GAP = 0.11
"""The least distance of two ticks as a share of the axis, so that labels such as +150% don't touch."""

WIDE = 3.0
"""An axis that spans more than this factor has ticks at round ratios, a shorter one at round percentages."""


def figures(report: Report) -> Iterator[page.Drawing]:
    """Yield the picture of a comparison, nothing if no row is judged."""
    picture = figure(report)
    if picture is not None:
        yield "changes", picture


@page.styled()
def figure(report: Report) -> Figure | None:
    """Return the picture as a figure, None if no row is judged."""
    rows = [row for row in report.rows if row["verdict"] in MARKS and row["change"] is not None]
    if not rows:
        return None
    rows.sort(key=lambda row: float(row["change"]))
    names = [str(row["implementation"]) for row in rows]
    points = list(map(report.point, rows))
    verdicts = [f"{row['verdict']} {change(row)}" for row in rows]
    heading = f"NEW against BASE: change of the speed-up over {report.baseline or 'the baseline'}"
    left = page.EDGE + _widest(names) + PAD + _widest(points) + (GAP if any(points) else 0)
    above = max(page.text_width(heading, page.TITLE_SIZE, bold=True), _widest(report.unlike, bold=True))
    made = page.new_figure(
        heading,
        report.shared.split(" · "),
        _notes(report, rows),
        [page.ROW_HEIGHT * (len(rows) + 0.4)],
        left=left,
        across=AXES_WIDTH,
        right=max(PAD + _widest(verdicts), page.EDGE + above - left - AXES_WIDTH) + page.EDGE,
        above=1.4 * page.TITLE_LINE + SCALE_ROOM,
        foot=2.4 * SCALE_ROOM + page.EDGE / 2,
        alarm=[STAMP, *report.unlike] if report.unlike else [],
    )
    axes = made.axes[0]
    _frame(axes, rows, report)
    for verdict in MARKS:
        _draw_marks(axes, rows, verdict)
    for place, (row, name, point, verdict) in enumerate(zip(rows, names, points, verdicts, strict=True)):
        for across, text, colour, side in (
            (page.EDGE - left, name, page.INK, "left"),
            (-PAD, point, page.GREY, "right"),
            (AXES_WIDTH + PAD, verdict, ink(MARKS[row["verdict"]].colour), "left"),
        ):
            options: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center_baseline"}
            axes.text(across / AXES_WIDTH, place, text, color=colour, ha=side, **options)
    _legend(axes, left, rows)
    return made


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


def _frame(axes: Axes, rows: Sequence[Row], report: Report) -> None:
    """Draw the axes with the margin shaded and the bounds of equivalence dashed."""
    margin, bound = 1 + report.limits.margin, 1 + report.limits.bound
    changes, lows, highs = _intervals(rows)
    low, high = log_axis.limits([1 / bound, bound, *changes], lows, highs)
    axes.set_ylim(len(rows) - 0.3, -0.7)
    axes.set_yticks(range(len(rows)), labels=[])
    axes.tick_params(axis="y", length=0)
    ticks = _ticks(low, high)
    page.log_scale(axes.xaxis, (low, high), ticks, [_percentage(tick) for tick in ticks])
    axes.tick_params(axis="x", labeltop=True)  # a tall picture is read from both ends
    nothing = math.log(1 / low) / math.log(high / low)
    axes.set_xlabel(X_LABEL, x=min(max(nothing, 0.25), 0.75))  # about the place of no change, and not over an edge
    axes.spines["left"].set_visible(False)
    axes.axvspan(1 / margin, margin, color=SHADE, linewidth=0, zorder=0.5, gid="margin")
    for end in (1 / bound, bound):
        axes.axvline(end, color=page.GREY, linewidth=0.7, linestyle=DASHES, zorder=1.5, gid="bound")
    axes.axvline(1, color=page.GREY, linewidth=0.9, zorder=1.5)


def _ticks(low: float, high: float) -> list[float]:
    if high / low > WIDE:
        return log_axis.ratios(low, high, TICK_GAP)
    locator = MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10])
    ticks = (1 + float(percent) / 100 for percent in locator.tick_values(100 * (low - 1), 100 * (high - 1)))
    return [tick for tick in ticks if low <= tick <= high]


def _percentage(ratio: float) -> str:
    percent = round(100 * (ratio - 1), 3)
    return f"{percent:+g}%" if percent else "0"


def _intervals(rows: Sequence[Row]) -> Array:
    """Return the changes and both ends of their intervals, NaN if there is none: [3, rows]."""
    columns = ("change", "change_low", "change_high")
    return np.array([[row[name] for row in rows] for name in columns], dtype=np.float64)


def _draw_marks(axes: Axes, rows: Sequence[Row], verdict: str) -> None:
    places = [place for place, row in enumerate(rows) if row["verdict"] == verdict]
    if not places:
        return
    values, lows, highs = _intervals([rows[place] for place in places])
    options: dict[str, Any] = {
        **page.marker(MARKS[verdict], *MARKER),
        "linestyle": "none",
        "color": MARKS[verdict].colour,
        "elinewidth": BAR_WIDTH,
        "capsize": CAP,
        "zorder": 3,
    }
    container = axes.errorbar(values, places, xerr=np.stack([values - lows, highs - values]), **options)
    container[0].set_gid(f"verdict {verdict}")


def _legend(axes: Axes, left: float, rows: Sequence[Row]) -> None:
    """Write the verdicts in use with their marks, in one line above the axes, which are `left` of the edge."""
    across, up = page.EDGE - left, page.size(axes)[1] + SCALE_ROOM + page.TITLE_LINE
    options: dict[str, Any] = {"transform": page.inches(axes), "clip_on": False}
    for verdict, mark in MARKS.items():
        number = sum(row["verdict"] == verdict for row in rows)
        if not number:
            continue
        axes.plot([across + SAMPLE / 2], [up], linestyle="none", **page.marker(mark, *MARKER), **options)
        across += SAMPLE + PAD / 2
        text = f"{number} {verdict}"
        axes.text(across, up, text, color=ink(mark.colour), va="center_baseline", **options)
        across += page.text_width(text) + GAP


def _widest(words: Iterable[str], *, bold: bool = False) -> float:
    return max((page.text_width(text, bold=bold) for text in words), default=0.0)
