"""The page of a comparison."""

from pathlib import Path

from bench.show.blocks import WARNING, Lines, Table
from bench.show.charts import catalogue, changes
from bench.show.comparison.changes import counts
from bench.show.comparison.report import SUMMARY, Report, columns, explanations, failures, head, implementations
from bench.show.pages import shell
from bench.store.saved_run import SavedRun

MOST_ROWS = 1_500
"""The most rows in a page, the worst first."""


def write(path: Path, report: Report, base: SavedRun, new: SavedRun) -> Path:
    """Write the page of a comparison, and return its file; raises WrongRequest if it can't be written."""
    rows = report.rows[:MOST_ROWS]
    left = len(report.rows) - len(rows)
    left_out = f"This page has the first {len(rows)} rows; --format csv has the other {left} too." if left else ""
    page = shell.render(
        "results.html",
        f"Comparison of {' and '.join(_names(base, new))}",
        head=[*head(report), Lines([left_out], WARNING)],
        stamp=report.mark,
        before={"By implementation": [Table(SUMMARY, implementations(report))]},
        pictures=[*catalogue.drawn(changes.pictures(report))],
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
