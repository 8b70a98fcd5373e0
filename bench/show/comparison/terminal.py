"""A comparison of two results as a table for the terminal, worst first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from bench.show.comparison.headline import headline
from bench.show.comparison.report import (
    EVENTS,
    ONE_SIDED,
    STAMP,
    Implementation,
    Report,
    change,
    counts,
    explanations,
    failure,
    implementations,
    side,
)
from bench.show.rows import Row
from bench.show.terminal.columns import Column, fit, line
from bench.show.terminal.console import Stamped
from bench.show.terminal.styles import BAD, GOOD, QUIET, WARNING
from bench.stats.limits import INCONCLUSIVE

GAP = " "
"""Between columns: a row of the default sweep takes one line of 80 characters."""

WIDE_GAP = "  "
"""Between columns of the summary."""

MOST_ROWS = 1_000
"""The most rows that are listed, the worst."""

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
    """Return the comparison for rich: headline, a line for each implementation, the rows that changed, and notes.

    With `shows_all` all rows are listed, worst first, but not those of one run alone if they are most. Every line of a
    forced comparison begins with the stamp.
    """
    rows = [row for row in report.rows if not (report.few_shared and row["verdict"] in ONE_SIDED)]
    if not report.shows_all:
        rows = [row for row in rows if row["verdict"] in EVENTS or row.get("rerun")]
    listed = rows[:MOST_ROWS]
    left_out = []
    if len(listed) < len(rows):
        left_out.append(f"not listed: {len(rows) - len(listed):,} more rows, none worse; --format csv has them")
    elif len(listed) < len(report.rows):
        how = "" if report.shows_all else "--all lists them, "
        left_out.append(f"not listed: {len(report.rows) - len(listed):,} rows; {how}--format csv has them")
    failures = [
        f"newly failing: {row['implementation']} {report.point(row)}".rstrip() + f": {failure(row)}"
        for row in listed
        if row["verdict"] == "newly failing"
    ]
    first = Text("\n".join(headline(report)), "bold")
    last = [*left_out, *failures, *explanations(report), *report.notes, counts(report.rows)]
    tables: list[RenderableType] = [
        Summary(implementations(report)),
        *_listed(listed, report),
    ]
    content = Group(first, Text(), Text(report.shared), *tables, *map(Text, last))
    if not report.unlike:
        return content
    reasons = Text(f"measured under different conditions: {'; '.join(report.unlike)}", BAD)
    return Stamped(Group(reasons, content), f"{STAMP} |", BAD)


def _listed(rows: Sequence[Row], report: Report) -> list[RenderableType]:
    return [Text(), Rows(rows, report)] if rows else []


@dataclass(frozen=True)
class Summary:
    """A line for each implementation, as a table that fits itself to the console."""

    lines: Sequence[Implementation]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table, line by line."""
        columns = [
            Column("implementation", lambda line: line["name"], is_text=True),
            Column("rows", lambda line: str(line["rows"])),
            Column("middle change", lambda line: line["median"]),
            Column("no change above", lambda line: line["excluded"]),
            Column("verdicts", lambda line: line["verdicts"], rank=1, is_text=True),
        ]
        rows = [vars(line) for line in self.lines]
        fitted = fit(columns, rows, options.max_width, WIDE_GAP)
        if rows:
            yield Text(line(fitted, None, WIDE_GAP), "bold")
        yield from (Text(line(fitted, row, WIDE_GAP)) for row in rows)


@dataclass(frozen=True)
class Rows:
    """The rows of a comparison as a table that fits itself to the console; a narrow one drops the raw times."""

    rows: Sequence[Row]
    report: Report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table, line by line."""
        columns = [
            Column("verdict", lambda row: str(row["verdict"]), is_text=True),
            Column("implementation", lambda row: str(row["implementation"]), is_text=True),
            Column("point", self.report.point, is_text=True),
            Column("change", change),
            Column("base", lambda row: side(row, "base"), rank=2),
            Column("new", lambda row: side(row, "new"), rank=2),
        ]
        fitted = fit(columns, self.rows, options.max_width, GAP)
        yield Text(line(fitted, None, GAP), "bold")
        for row in self.rows:
            text = Text(line(fitted, row, GAP))
            text.stylize(STYLES.get(row["verdict"], ""), 0, len(row["verdict"]))
            yield text
