"""A comparison of two results as a table for the terminal, worst first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from bench.show.comparison.headline import headline
from bench.show.comparison.report import (
    ONE_SIDED,
    STAMP,
    Report,
    change,
    counts,
    explanations,
    failure,
    more,
    point_words,
    shared,
    shares_few,
    side,
    varying_columns,
)
from bench.show.rows import Row
from bench.show.terminal.columns import Column, Fitted, fit
from bench.show.terminal.console import Stamped
from bench.show.terminal.styles import BAD, GOOD, QUIET, WARNING
from bench.stats.limits import INCONCLUSIVE

GAP = " "
"""Between columns: a row of the default sweep takes one line of 80 characters."""

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
    """Return the comparison for rich: headline, table worst first, new failures, notes and counts.

    Cases of one run alone are not listed if they are most. Every line of a forced comparison begins with the stamp.
    """
    rows = report.rows
    columns = varying_columns(rows)
    first = Text("\n".join(headline(report)), "bold")
    last = [*_left_out(rows), *_failures(rows, columns), *explanations(report), *report.notes, counts(rows)]
    content = Group(first, Text(), Text(shared(rows)), Rows(_listed(rows), columns), *map(Text, last))
    if not report.unlike:
        return content
    reasons = Text(f"measured under different conditions: {'; '.join(report.unlike)}", BAD)
    return Stamped(Group(reasons, content), f"{STAMP} |", BAD)


@dataclass(frozen=True)
class Rows:
    """The rows of a comparison as a table that fits itself to the console; a narrow one drops the raw times."""

    rows: Sequence[Row]
    columns: set[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table, line by line."""
        fitted = fit(self._columns(), self.rows, options.max_width, GAP)
        yield self._line([column.column.heading for column in fitted], fitted, "bold")
        for row in self.rows:
            yield self._line([column.column.cell(row) for column in fitted], fitted, "", row["verdict"])

    def _columns(self) -> list[Column]:
        return [
            Column("verdict", lambda row: str(row["verdict"]), is_text=True),
            Column("implementation", lambda row: str(row["implementation"]), is_text=True),
            Column("point", lambda row: point_words(row, self.columns), is_text=True),
            Column("change", change),
            Column("base", lambda row: side(row, "base"), rank=2),
            Column("new", lambda row: side(row, "new"), rank=2),
            Column("more", more, rank=1),
        ]

    def _line(self, cells: Sequence[str], fitted: Sequence[Fitted], style: str, verdict: str = "") -> Text:
        aligned = (column.align(cell) for column, cell in zip(fitted, cells, strict=True))
        line = Text(GAP.join(aligned).rstrip(), style)
        line.stylize(STYLES.get(verdict, ""), 0, len(verdict))
        return line


def _listed(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the table: without those of one run alone if they are most."""
    return [row for row in rows if row["verdict"] not in ONE_SIDED] if shares_few([*rows]) else [*rows]


def _left_out(rows: Sequence[Row]) -> list[str]:
    number = len(rows) - len(_listed(rows))
    return [f"not listed: {number} cases of one run alone; --format csv has them"] if number else []


def _failures(rows: list[Row], columns: set[str]) -> list[str]:
    return [
        f"newly failing: {row['implementation']} {point_words(row, columns)}".rstrip() + f": {failure(row)}"
        for row in rows
        if row["verdict"] == "newly failing"
    ]
