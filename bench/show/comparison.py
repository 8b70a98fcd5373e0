"""A comparison of two results as a table for the terminal, worst first."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.verdicts import INCONCLUSIVE
from bench.show.compared import (
    STAMP,
    Report,
    change,
    counts,
    explanations,
    failure,
    more,
    moving,
    shared,
    side,
    where,
)
from bench.show.rows import Row
from bench.show.stamped import Stamped
from bench.show.styles import BAD, GOOD, QUIET, WARNING

STYLES = {
    "slower": BAD,
    "newly failing": BAD,
    "missing": WARNING,
    INCONCLUSIVE: WARNING,
    "fixed": GOOD,
    "faster": GOOD,
    "baseline": QUIET,
}
"""Styles of the verdicts that stand out; every verdict is also said in words."""


def render(report: Report) -> RenderableType:
    """Return the comparison for rich: what all rows share, the table worst first, new failures, notes and the counts.

    Every line of one that was forced begins with the stamp.
    """
    rows = report.rows
    columns = moving(rows)
    lines = (*_failures(rows, columns), *explanations(report), *report.notes, counts(rows))
    content = Group(Text(shared(rows), "bold"), _table(rows, columns), *map(Text, lines))
    if not report.unlike:
        return content
    reasons = Text(f"measured under different conditions: {'; '.join(report.unlike)}", BAD)
    return Stamped(Group(reasons, content), f"{STAMP} |", BAD)


def _table(rows: list[Row], columns: set[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("implementation", overflow="fold")
    table.add_column("point", overflow="fold")
    is_open = any(map(more, rows))
    for title in ("change", "base", "new", *(["more"] if is_open else [])):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row, columns), *([Text(more(row))] if is_open else []))
    return table


def _cells(row: Row, columns: set[str]) -> list[Text]:
    verdict = row["verdict"]
    words = (row["implementation"], where(row, columns), change(row), side(row, "base"), side(row, "new"))
    return [Text(verdict, style=STYLES.get(verdict, "")), *map(Text, words)]


def _failures(rows: list[Row], columns: set[str]) -> list[str]:
    return [
        f"newly failing: {row['implementation']} {where(row, columns)}".rstrip() + f": {failure(row)}"
        for row in rows
        if row["verdict"] == "newly failing"
    ]
