"""The picture of a comparison: every judged row with its interval, and the limits by which it is judged."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from bench.analyse.change import Change
from bench.plan.verdicts import EQUIVALENT, FASTER, OPEN, SLOWER
from bench.show.comparison.changes import counts
from bench.show.comparison.report import STAMP, Report, percent
from bench.show.figures import layout
from bench.show.picture import Marks, Panel, Picture, Rows, Scale, Shape
from bench.stats.limits import Limits
from bench.store import units
from impls.catalogue import DASHED, SOLID, Style

MARKS = {
    SLOWER: Style("warning", SOLID, "<"),
    OPEN: Style("quiet", SOLID, "o", hollow=True),
    EQUIVALENT: Style("ink", SOLID, "s"),
    FASTER: Style("good", SOLID, ">"),
}
"""The verdicts of rows that are judged, distinguished by colour and by marker."""

TITLE = "← slower\u2003\u2003change\u2003\u2003faster →"

TICK_GAP, TICKS = 0.11, 7
"""The least distance of two ticks as a share of the axis, so that labels such as +150% don't touch; even ticks."""

WIDE = 3.0
"""An axis that spans more than this factor has ticks at round ratios, a shorter one at round percentages."""

ROW_IN, LEAST_IN, WIDTH = 0.22, 0.6, 4.6
"""In inches: the height of a row, the least of all, and the width of the axes."""


def pictures(report: Report) -> Iterator[Picture]:
    """Yield the picture of a comparison, nothing if no row is judged."""
    rows = sorted(filter(is_drawn, report.rows), key=lambda row: row.ratio.value)
    if rows:
        yield Picture(
            name="changes",
            heading="NEW against BASE: change of speed",
            facts=report.shared.split(" · "),
            notes=_notes(report, rows),
            stacks=[[changes([drawn_row(report, row) for row in rows], report.limits)]],
            alarm=[STAMP, *report.unlike] if report.unlike else [],
            legend={f"{count} {name}": MARKS[name] for name, count in _numbers(rows).items()},
            width=WIDTH,
        )


def is_drawn(row: Change) -> bool:
    """Return whether a row is judged and has a change."""
    return row.verdict in MARKS and not math.isnan(row.ratio.value)


def drawn_row(report: Report, row: Change) -> dict[str, Any]:
    """Return a row of a comparison as its chart draws it."""
    return {
        "label": report.named(row),
        "implementation": row.case.implementation,
        "verdict": row.verdict,
        "words": f"{row.verdict} {percent(row)}",
        **row.numbers(),
    }


def changes(rows: Rows, limits: Limits) -> Panel:
    """Return the changes of drawn rows: marks with intervals, the margin, and the bounds of equivalence."""
    margin, bound = 1 + limits.margin, 1 + limits.bound
    labels = Scale.places("", [row["label"] for row in rows])
    ends = layout.limits(
        [1 / bound, bound, *(row["change"] for row in rows)],
        *([row[name] for row in rows if row[name] is not None] for name in ("change_low", "change_high")),
    )
    own: dict[str, Any] = {"y": "label", "by": "verdict", "styles": MARKS}
    return Panel(
        x=Scale.log(TITLE, ends, _ticks(*ends), _percentage),
        y=labels,
        marks=[
            Marks(shape=Shape.CELL, x=1 / margin, x2=margin, rows=[{}], colour="rule", opacity=0.6, width=0.0),
            *(Marks(shape=Shape.RULE, x=at, rows=[{}], dash=DASHED, colour="quiet") for at in (1 / bound, bound)),
            Marks(shape=Shape.RULE, x=1.0, rows=[{}]),
            Marks(shape=Shape.RULE, x="change_low", x2="change_high", width=1.6, has_caps=True, **own),
            Marks(shape=Shape.POINT, x="change", **own),
            Marks(shape=Shape.TEXT, text="words", beside=True, **own),
        ],
        height=max(LEAST_IN, ROW_IN * len(rows)),
        rows=rows,
    )


def _numbers(rows: Sequence[Change]) -> dict[str, int]:
    """Return the numbers of the verdicts, in the order of MARKS."""
    numbers = Counter(row.verdict for row in rows)
    return {name: numbers[name] for name in MARKS if name in numbers}


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


def _ticks(low: float, high: float) -> list[float]:
    if high / low > WIDE:
        return layout.ratios(low, high, TICK_GAP)
    return [1 + percent / 100 for percent in layout.even(100 * (low - 1), 100 * (high - 1), TICKS)]


def _percentage(ratio: float) -> str:
    percent = round(100 * (ratio - 1), 3)
    return f"{percent:+g}%" if percent else "0"
