"""What was not measured, and why."""

from collections.abc import Iterator, Sequence

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.plan.case import Case
from bench.show.rows import UNTRIED, Row, plain, reason
from bench.show.styles import of_status
from bench.show.words import differences, varying

Kind = tuple[str, str, str]
"""Status, implementation and detail."""


def failures(table: pd.DataFrame) -> RenderableType:
    """Return what failed, and apart from it what was never tried, each kind once with the points that it met."""
    rows = [row for row in plain(table) if row["status"] != "ok"]
    wrong = [row for row in rows if row["status"] not in UNTRIED]
    untried = [row for row in rows if row["status"] in UNTRIED]
    if not rows:
        return Text(f"all {len(table)} cases were measured")
    different = varying(Case.from_columns(row).point for row in plain(table))
    blocks = [*_block("failed", wrong, different), *_block("not tried", untried, different)]
    return Group(*blocks)


def _block(title: str, rows: Sequence[Row], different: set[str]) -> Iterator[RenderableType]:
    if not rows:
        return
    yield Text(f"{title}: {_cases(len(rows))}", "bold")
    grid = Table.grid(padding=(0, 2), pad_edge=True)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for (status, implementation, detail), group in _kinds(rows).items():
        where = Text("; ".join((detail, _where(group, different))) if detail else _where(group, different))
        grid.add_row(status, Text(implementation), where, style=of_status(status))
    yield grid


def _kinds(rows: Sequence[Row]) -> dict[Kind, list[Row]]:
    kinds: dict[Kind, list[Row]] = {}
    for row in rows:
        kinds.setdefault((row["status"], row["implementation"], reason(row)), []).append(row)
    return kinds


def _where(rows: Sequence[Row], different: set[str]) -> str:
    first = differences(Case.from_columns(rows[0]).point, different)
    if len(rows) == 1:
        return f"at {first}" if first else "at the only point"
    return f"at {len(rows)} points, the first {first}"


def _cases(number: int) -> str:
    return "1 case" if number == 1 else f"{number} cases"
