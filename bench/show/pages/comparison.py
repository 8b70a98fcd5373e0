"""The page of a comparison, with the samples of both runs of each row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.analyse.change import Change
from bench.show.blocks import WARNING, Lines, Table
from bench.show.charts.changes import changes, drawn_row, is_drawn
from bench.show.comparison.changes import counts
from bench.show.comparison.report import SUMMARY, Report, columns, explanations, failures, head, implementations
from bench.show.pages import shell, vega
from bench.show.pages.shell import ANY, Figure
from bench.show.rows import Row, is_measured
from bench.store.saved_run import SavedRun

MOST_ROWS = 1_500
"""The most rows in a page, the worst first."""

TIMES = ("latency_s", "latency_low_s", "latency_high_s")


def write(path: Path, report: Report, base: SavedRun, new: SavedRun) -> Path:
    """Write the page of a comparison, and return its file; raises WrongRequest if it can't be written."""
    rows = report.rows[:MOST_ROWS]
    left = len(report.rows) - len(rows)
    left_out = f"This page has the first {len(rows)} rows; --format csv has the other {left} too." if left else ""
    page = shell.render(
        "results.html",
        f"Comparison of {' and '.join(_names(base, new))}",
        list(dict.fromkeys(row.case.implementation for row in rows)),
        _data(report, rows, base, new),
        head=[*head(report), Lines([left_out], WARNING)],
        stamp=report.mark,
        figures=[_changes(report, rows)] if any(map(is_drawn, rows)) else [],
        before={"By implementation": [Table(SUMMARY, implementations(report))]},
        table_title="All rows",
        table=Table(columns(report), rows),
        below_table=[],
        after={
            "What to know": [
                Lines([counts(report.rows)]),
                failures(report, rows),
                Lines([*explanations(report), *report.notes], is_list=True),
            ]
        },
    )
    return shell.write(path, page)


def _names(base: SavedRun, new: SavedRun) -> tuple[str, str]:
    """Return the names of two runs, with as many of their folders as it takes to distinguish them."""
    first, second = (saved.path.resolve().parts for saved in (base, new))
    longest = max(len(first), len(second))
    count = next((count for count in range(1, longest + 1) if first[-count:] != second[-count:]), 1)
    return "/".join(first[-count:]), "/".join(second[-count:])


def _data(report: Report, rows: Sequence[Change], base: SavedRun, new: SavedRun) -> dict[str, Any]:
    """Return what the page's script reads; rows of the table are in the same order as here."""
    points = list(dict.fromkeys(row.point for row in rows))
    drawn_rows = [
        {
            **drawn_row(report, row),
            "point": points.index(row.point),
            "sides": [_side(side) for side in (row.base, row.new)],
        }
        for row in rows
    ]
    in_base, in_new = (shell.by_case(run.records) for run in (base, new))
    return {
        "points": [report.labels[point] for point in points],
        "rows": shell.columns(drawn_rows),
        "sides": ["BASE", "NEW"],
        **shell.cases(
            [
                {n: (row.base, in_base.get(row.case, [])) for n, row in enumerate(rows) if is_measured(row.base)},
                {n: (row.new, in_new.get(row.case, [])) for n, row in enumerate(rows) if is_measured(row.new)},
            ],
            [report.again.command(row.case) for row in rows],
        ),
    }


def _changes(report: Report, rows: Sequence[Change]) -> Figure:
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
                list(dict.fromkeys(row.case.implementation for row in rows)),
                {"label": "row", "verdict": "verdict", "change_text": "change"},
            )
        },
        column="change",
    )


def _side(row: Row) -> dict[str, Any]:
    """Return the latency of a row on one side of a comparison, with its interval."""
    return {name: float(row[name]) if is_measured(row) and row[name] is not None else None for name in TIMES}
