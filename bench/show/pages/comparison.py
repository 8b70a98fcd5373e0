"""The page of a comparison, with the samples of both runs of each row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.plan.case import Case
from bench.show.blocks import Lines, Table
from bench.show.charts.changes import changes, drawn_row, is_drawn
from bench.show.columns import latency_text
from bench.show.comparison import blocks
from bench.show.comparison.report import Report, counts, explanations, implementations
from bench.show.pages import shell, vega
from bench.show.pages.shell import ANY, Figure
from bench.show.rows import Row, is_measured, plain
from bench.store.saved_run import SavedRun

MOST_ROWS = 1_500
"""The most rows in a page, the worst first."""

TIMES = ("latency_s", "latency_low_s", "latency_high_s")


def write(path: Path, report: Report, base: SavedRun, new: SavedRun) -> Path:
    """Write the page of a comparison, and return its file; raises WrongRequest if it can't be written."""
    rows = report.rows[:MOST_ROWS]
    left = len(report.rows) - len(rows)
    page = shell.render(
        "comparison.html",
        f"Comparison of {' and '.join(_names(base, new))}",
        list(dict.fromkeys(str(row["implementation"]) for row in rows)),
        _data(report, rows, base, new),
        figures=[_changes(report, rows)] if any(map(is_drawn, rows)) else [],
        stamp=report.mark,
        head=blocks.head(report),
        left_out=f"This page has the first {len(rows)} rows; --format csv has the other {left} too." if left else "",
        summary=[Table(blocks.SUMMARY, implementations(report))],
        table=Table(blocks.columns(report), rows),
        notes=[
            Lines([counts(report.rows)]),
            blocks.failures(report, rows),
            Lines([*explanations(report), *report.notes], is_list=True),
        ],
    )
    return shell.write(path, page)


def _names(base: SavedRun, new: SavedRun) -> tuple[str, str]:
    """Return the names of two runs, with as many of their folders as it takes to distinguish them."""
    first, second = (saved.path.resolve().parts for saved in (base, new))
    longest = max(len(first), len(second))
    count = next((count for count in range(1, longest + 1) if first[-count:] != second[-count:]), 1)
    return "/".join(first[-count:]), "/".join(second[-count:])


def _data(report: Report, rows: Sequence[Row], base: SavedRun, new: SavedRun) -> dict[str, Any]:
    """Return what the page's script reads; rows of the table are in the same order as here."""
    labels = [report.point(row) or "the only point" for row in rows]
    points = list(dict.fromkeys(labels))
    cases = [Case.from_columns(row) for row in rows]
    sides = [{Case.from_columns(row): row for row in plain(run.table) if is_measured(row)} for run in (base, new)]
    drawn_rows = [
        {**drawn_row(report, row), "point": points.index(label), "sides": [_side(side.get(case)) for side in sides]}
        for row, label, case in zip(rows, labels, cases, strict=True)
    ]
    records = [shell.by_case(run.records) for run in (base, new)]
    return {
        "kind": "comparison",
        "points": points,
        "rows": shell.columns(drawn_rows),
        "sides": ["BASE", "NEW"],
        "commands": shell.packed(shell.as_data([report.again.command(case) for case in cases])),
        **shell.samples([
            {number: (side[case], of.get(case, [])) for number, case in enumerate(cases) if case in side}
            for side, of in zip(sides, records, strict=True)
        ]),
    }  # fmt: skip


def _changes(report: Report, rows: Sequence[Row]) -> Figure:
    return Figure(
        kind="changes",
        title="What changed",
        note="NEW's speed by BASE's, each relative to the other implementations of its own run, or to the baseline if "
        "they are too few; left of 0 is slower. Bars are 95\u00a0% intervals. "
        "Click on a row to see the samples of both runs.",
        charts={
            ANY: vega.spec(
                changes([drawn_row(report, row) for row in rows if is_drawn(row)], report.limits, on_page=True),
                "The change of each row with its interval",
                list(dict.fromkeys(str(row["implementation"]) for row in rows)),
                {"label": "row", "verdict": "verdict", "text": "change"},
            )
        },
        needs="change",
    )


def _side(row: Row | None) -> dict[str, Any]:
    """Return the latency of a row on one side of a comparison, with its interval and in words."""
    if row is None:
        return {"latency_s": None}
    numbers = {name: None if row[name] is None else float(row[name]) for name in TIMES}
    return {**numbers, "latency_text": latency_text(row)}
