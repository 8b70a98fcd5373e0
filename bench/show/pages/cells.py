"""The table of a run's page: the point, the implementation, how it ended, and every column that any row has."""

from collections.abc import Sequence

from bench.show import columns as shared
from bench.show.blocks import Cell, Column
from bench.show.rows import Row, is_measured, reason

FIRST = (
    Column("point", lambda _: "", key="point"),
    Column("implementation", lambda row: str(row["implementation"]), key="implementation", of_failures=True),
    Column("status", lambda row: ": ".join(filter(None, (row["status"], reason(row)))), key="status", of_failures=True),
)
"""The columns that every page has."""


def columns(rows: Sequence[Row], baseline: str | None) -> list[Column]:
    """Return the columns of a page with these rows, from left to right."""
    others = [each for each in shared.columns(baseline) if each.key != "implementation"]
    return [*FIRST, *(each for each in others if any(_cell(each, row).text for row in rows))]


def cells(columns: Sequence[Column], row: Row, label: str) -> list[Cell]:
    """Return the cells of a row at a point with this name."""
    return [Cell(label), *(_cell(column, row) for column in columns[1:])]


def _cell(column: Column, row: Row) -> Cell:
    return column.cell(row) if column.of_failures or is_measured(row) else Cell("")
