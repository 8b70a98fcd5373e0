"""The picture of a comparison: every judged row with its interval, and the limits by which it is judged."""

import math
from collections.abc import Iterator, Sequence

from bench.analyse.change import Change
from bench.analyse.rows import grouped
from bench.plan.verdicts import EQUIVALENT, FASTER, OPEN, SLOWER
from bench.show.charts.sheet import Picture, finished, logarithmic, marks, named_beside, sheet
from bench.show.comparison.changes import counts
from bench.show.comparison.report import STAMP, Report, percent
from bench.show.palette import light
from bench.store import units
from impls.catalogue import SOLID, Style

MARKS = {
    SLOWER: Style(light("warning"), SOLID, "<"),
    OPEN: Style(light("quiet"), SOLID, "o", hollow=True),
    EQUIVALENT: Style(light("ink"), SOLID, "s"),
    FASTER: Style(light("good"), SOLID, ">"),
}
"""The verdicts of rows that are judged, distinguished by colour and by marker."""

ROW_IN, LEAST_IN, WIDTH = 0.22, 0.6, 4.6
"""In inches: the height of a row, the least of all, and the width of the axes."""


def pictures(report: Report) -> Iterator[Picture]:
    """Yield the picture of a comparison, nothing if no row is judged."""
    rows = sorted(filter(is_drawn, report.rows), key=lambda row: row.ratio.value)
    if not rows:
        return
    ((axes,),) = sheet([max(LEAST_IN, ROW_IN * len(rows))], width=WIDTH)
    margin, bound = 1 + report.limits.margin, 1 + report.limits.bound
    ratios = [row.ratio for row in rows]
    logarithmic(axes, "x", [1 / bound, bound, *(of.value for of in ratios)], _percentage, lows=[of.low for of in ratios],
        highs=[of.high for of in ratios])  # fmt: skip
    axes.axvspan(1 / margin, margin, color=light("rule"), alpha=0.6, linewidth=0)
    for at, dash in ((1 / bound, "--"), (1.0, "-"), (bound, "--")):
        axes.axvline(at, color=light("quiet"), linestyle=dash, linewidth=1.2)
    places = {id(row): place for place, row in enumerate(rows)}
    for verdict, own in grouped(rows, lambda row: row.verdict).items():
        of = [row.ratio for row in own]
        marks(axes, MARKS[verdict], [each.value for each in of], [places[id(row)] for row in own], along="x",
            lows=[each.low for each in of], highs=[each.high for each in of], label=f"{len(own)} {verdict}")  # fmt: skip
    axes.set(ylim=(len(rows) - 0.4, -0.6), yticks=range(len(rows)), xlabel="← slower\u2003\u2003change\u2003\u2003faster →",
        yticklabels=[f"{report.named(row)}  {percent(row)}" for row in rows])  # fmt: skip
    named_beside(axes)
    alarm = [STAMP, *report.unlike] if report.unlike else []
    yield finished(
        axes, "changes", "NEW against BASE: change of speed", report.shared.split(" · "), _notes(report, rows), alarm
    )


def is_drawn(row: Change) -> bool:
    """Return whether a row is judged and has a change."""
    return row.verdict in MARKS and not math.isnan(row.ratio.value)


def _notes(report: Report, rows: Sequence[Change]) -> list[str]:
    others = [row for row in report.rows if not is_drawn(row)]
    notes = [
        f"shaded: the margin of {units.percent(report.limits.margin, trim=True)}",
        f"dashed: the bounds of equivalence, {units.percent(report.limits.bound, trim=True)}",
        "bar: 95 % interval over processes; without a cap it goes on beyond the axis",
    ]
    if not all(row.ratio.is_known for row in rows):
        notes.append("mark without a bar: too few processes for an interval")
    return [*notes, *([f"not drawn: {counts(others)}"] if others else [])]


def _percentage(ratio: float) -> str:
    percent = round(100 * (ratio - 1), 3)
    return f"{percent:+g}%" if percent else "0"
