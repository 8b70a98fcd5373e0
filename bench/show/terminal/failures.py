"""Cases that were not measured, and why."""

from collections.abc import Iterator, Sequence

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.plan.case import Case, Point
from bench.show.point_text import counted, differences, varying
from bench.show.rows import UNTRIED, Row, plain, reason
from bench.show.terminal.styles import style_of_status

NAMES_WIDTH = 32
"""The width of the column of implementations, unless a name is longer."""

Kind = tuple[str, str, tuple[Point, ...]]
"""Status, detail, and the points at which they occurred."""


def failures(table: pd.DataFrame) -> RenderableType:
    """Return the failed cases, those never tried, and those with a doubt; each kind once with its points."""
    rows = [row for row in plain(table) if row["status"] != "ok" or reason(row)]
    wrong = [row for row in rows if row["status"] not in ("ok", *UNTRIED)]
    untried = [row for row in rows if row["status"] in UNTRIED]
    if not rows:
        return Text(f"all {len(table)} cases were measured")
    doubtful = [row for row in rows if row["status"] == "ok"]
    different = varying(Case.from_columns(row).point for row in plain(table))
    titled = {"failed": wrong, "not tried": untried, "measured, with a doubt": doubtful}
    blocks = [block for title, of in titled.items() for block in _block(title, of, different)]
    return Group(*blocks)


def _block(title: str, rows: Sequence[Row], different: set[str]) -> Iterator[RenderableType]:
    if not rows:
        return
    yield Text(f"{title}: {counted([len(rows)], 'case', 'cases')}", "bold")
    grid = Table.grid(padding=(0, 2), pad_edge=True)
    grid.add_column(no_wrap=True)
    grid.add_column(max_width=max(NAMES_WIDTH, *(len(row["implementation"]) for row in rows)))
    grid.add_column(overflow="fold")
    for (status, detail, points), names in _kinds(rows).items():
        reasons = Text("; ".join(filter(None, (detail, _where(points, different)))))
        grid.add_row(status, Text(", ".join(names)), reasons, style=style_of_status(status))
    yield grid


def _kinds(rows: Sequence[Row]) -> dict[Kind, list[str]]:
    """Return the implementations of each kind of failure, in the order of the rows."""
    points: dict[tuple[str, str, str], list[Point]] = {}
    for row in rows:
        points.setdefault((row["status"], reason(row), row["implementation"]), []).append(Case.from_columns(row).point)
    kinds: dict[Kind, list[str]] = {}
    for (status, detail, implementation), failed_at in points.items():
        kinds.setdefault((status, detail, tuple(failed_at)), []).append(implementation)
    return kinds


def _where(points: Sequence[Point], different: set[str]) -> str:
    first = differences(points[0], different)
    if len(points) == 1:
        return f"at {first}" if first else "at the only point"
    return f"at {len(points)} points, the first {first}"
