"""The chart of a comparison: every judged row with its interval, and the limits by which it is judged."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from bench.analyse.change import Change
from bench.plan.verdicts import EQUIVALENT, FASTER, OPEN, SLOWER
from bench.show.charts import base
from bench.show.charts.base import Sheet, Spec
from bench.show.comparison.changes import counts
from bench.show.comparison.report import STAMP, Report, percent
from bench.show.figures import layout
from bench.stats.limits import Limits
from bench.store import units
from impls.catalogue import SOLID, Style

MARKS = {
    SLOWER: Style("var(--warning)", SOLID, "<"),
    OPEN: Style("var(--quiet)", SOLID, "o", hollow=True),
    EQUIVALENT: Style("var(--ink)", SOLID, "s"),
    FASTER: Style("var(--good)", SOLID, ">"),
}
"""The verdicts of rows that are judged, distinguished by colour and by marker."""

TITLE = "← slower\u2003\u2003change\u2003\u2003faster →"

TICK_GAP, TICKS = 0.11, 7
"""The least distance of two ticks as a share of the axis, so that labels such as +150% don't touch; even ticks."""

WIDE = 3.0
"""An axis that spans more than this factor has ticks at round ratios, a shorter one at round percentages."""

ROW_PX, WRAPPED_ROW_PX, LABEL_CHARACTERS = 19, 28, 24
"""The height of a row; of one whose label is wrapped at this number of characters."""

WIDTH_PX = 440
"""The width of the axes in a file."""


def sheets(report: Report) -> Iterator[tuple[str, Sheet]]:
    """Yield the name and the picture of a comparison, nothing if no row is judged."""
    rows = sorted(filter(is_drawn, report.rows), key=lambda row: row.ratio.value)
    if not rows:
        return
    drawn = [{**drawn_row(report, row), "id": number} for number, row in enumerate(rows)]
    words = max(base.text_px(f"{row['verdict']} {row['text']}") for row in drawn)
    labels = max(base.text_px(row["label"]) for row in drawn)
    yield (
        "changes",
        Sheet(
            heading="NEW against BASE: change of speed",
            facts=report.shared.split(" · "),
            notes=_notes(report, rows),
            spec=changes(rows, report.limits, in_file=True),
            rows=drawn,
            width=WIDTH_PX,
            across=WIDTH_PX + labels + words,
            parameters={"kept": list(range(len(rows)))},
            alarm=[STAMP, *report.unlike] if report.unlike else [],
        ),
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
        "text": percent(row),
        "colour": MARKS[row.verdict].colour if is_drawn(row) else "",
        **(row.numbers() if is_drawn(row) else dict.fromkeys(row.numbers())),
    }


def changes(rows: Sequence[Change], limits: Limits, *, in_file: bool = False) -> Spec:
    """Return the chart of the changes of some rows: marks with intervals, the margin, and the bounds of equivalence.

    In a file each row has its verdict beside it in words; a page shows it on pointing, and wraps labels.
    """
    bound = 1 + limits.bound
    ends = layout.limits(
        [1 / bound, bound, *(row.ratio.value for row in rows)],
        *([end for row in rows if not math.isnan(end := getattr(row.ratio, name))] for name in ("low", "high")),
    )
    height = alt.Step(ROW_PX if in_file else WRAPPED_ROW_PX)
    layers = [*_limits(limits, ends), *_rows(rows, ends, in_file=in_file)]
    resolve = alt.Resolve(axis={"x": "independent"})
    return base.spec("The change of each row with its interval", *layers, height=height, resolve=resolve)


def _limits(limits: Limits, ends: tuple[float, float]) -> Iterator[alt.Chart]:
    """Yield the margin as a shade, and lines at both bounds of equivalence and at 1, which is no change."""
    margin, bound, once = 1 + limits.margin, 1 + limits.bound, base.inline([{}])

    def x(value: float) -> Any:
        return alt.datum(value, scale=base.log(ends), axis=None)

    yield once.mark_rect(color="var(--rule)", opacity=0.6).encode(x=x(1 / margin), x2=alt.datum(margin))
    for end in (1 / bound, bound):
        yield once.mark_rule(strokeDash=[3, 3], color="var(--quiet)").encode(x=x(end))
    yield once.mark_rule(color="var(--ink)").encode(x=x(1.0))


def _rows(rows: Sequence[Change], ends: tuple[float, float], *, in_file: bool) -> Iterator[alt.Chart]:
    """Yield the interval of each row with its caps, its mark, and in a file its verdict in words."""
    drawn = base.chart().transform_filter("isValid(datum.change) && indexof(kept, datum.id) >= 0")
    labels = {"labelLimit": 600} if in_file else {"labelLimit": 190, **base.in_lines(LABEL_CHARACTERS)}
    y = alt.Y("label:N", title=None, sort=alt.EncodingSortField("id"), axis=alt.Axis(grid=True, **labels))
    at = _ticks(*ends)

    def x(column: str, **axis: Any) -> alt.X:
        """Return a place on the axis, which is drawn by the layers that give it properties alone."""
        own = base.ticks(at, map(_percentage, at), **axis) if axis else None
        return alt.X(f"{column}:Q", scale=base.log(ends), axis=own)

    looks = _looks(rows)
    bars = drawn.transform_filter("isValid(datum.change_low)")
    yield bars.mark_rule(strokeWidth=1.6, clip=True, cursor="pointer").encode(
        y=y, x=x("change_low", orient="bottom", title=TITLE), x2="change_high:Q", stroke=looks["stroke"]
    )
    for end in ("change_low", "change_high"):
        yield bars.mark_tick(thickness=1, size=7, clip=True).encode(y=y, x=x(end), stroke=looks["stroke"])
    yield drawn.mark_point(size=base.SIZE * 0.6, opacity=1, cursor="pointer").encode(
        y=y, x=x("change", orient="top", title=None), **looks,
        tooltip=[alt.Tooltip("label:N", title="row"), alt.Tooltip("verdict:N"), alt.Tooltip("text:N", title="change")],
    )  # fmt: skip
    if in_file:
        words = drawn.transform_calculate(words="datum.verdict + ' ' + datum.text")
        yield words.mark_text(align="left", dx=10, fontSize=base.SMALL_PX).encode(
            y=y, x=alt.value("width"), text="words:N", color=base.own_colour("colour")
        )


def _looks(rows: Sequence[Change]) -> dict[str, Any]:
    """Return colour, marker, and whether it is hollow, of verdicts, with a legend that counts them."""
    numbers = Counter(row.verdict for row in rows)
    styles = {name: mark for name, mark in MARKS.items() if name in numbers}
    words = [f"{numbers[name]} {name}" for name in styles]
    return base.marks("verdict:N", styles, orient="bottom", labelExpr=f"{words}[indexof({[*styles]}, datum.value)]")


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
