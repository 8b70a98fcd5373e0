"""Cases without a time, and why, in the terminal."""

from collections.abc import Iterator, Sequence

import pandas as pd
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bench.plan.case import Case, Point
from bench.show.failures import reasons
from bench.show.point_text import counted, differences, varying
from bench.show.rows import UNTRIED, Row, plain, reason
from bench.show.terminal.console import style_of_status

NAMES_WIDTH = 32
"""The width of the column of implementations, unless a name is longer."""


def failures(table: pd.DataFrame) -> RenderableType:
    """Return the failed cases, those never tried, and those with a doubt; each kind once with its points."""
    everything = plain(table)
    rows = [row for row in everything if row["status"] != "ok" or reason(row)]
    if not rows:
        return Text(f"all {len(table)} cases were measured")
    wrong = [row for row in rows if row["status"] not in ("ok", *UNTRIED)]
    untried = [row for row in rows if row["status"] in UNTRIED]
    doubtful = [row for row in rows if row["status"] == "ok"]
    different = varying(Case.from_columns(row).point for row in everything)
    titled = {"failed": wrong, "not tried": untried, "measured, with a doubt": doubtful}
    return Group(*(block for title, of in titled.items() if of for block in _block(title, of, different)))


def of_point(rows: Sequence[Row], cases: int, width: int | None, gap: int) -> RenderableType:
    """Return why these rows of a point hold no time, one line for each reason.

    `cases` is the number of rows of the point, `width` that of the column of implementations.
    """
    grid = Table.grid(padding=(0, gap))
    grid.add_column(min_width=width, no_wrap=True)
    grid.add_column(overflow="fold")
    for each in reasons(rows):
        who = f"all {cases}" if 1 < len(each.names) == cases else ", ".join(each.names)
        grid.add_row(Text(who), Text(each.why), style=style_of_status(each.status))
    return Padding(grid, (0, 0, 0, gap), expand=False)


def _block(title: str, rows: Sequence[Row], different: set[str]) -> Iterator[RenderableType]:
    yield Text(f"{title}: {counted([len(rows)], 'case', 'cases')}", "bold")
    grid = Table.grid(padding=(0, 2), pad_edge=True)
    grid.add_column(no_wrap=True)
    grid.add_column(max_width=max(NAMES_WIDTH, *(len(row["implementation"]) for row in rows)))
    grid.add_column(overflow="fold")
    for each in reasons(rows):
        why = Text("; ".join(filter(None, (each.detail, _where(each.points, different)))))
        grid.add_row(each.status, Text(", ".join(each.names)), why, style=style_of_status(each.status))
    yield grid


def _where(points: Sequence[Point], different: set[str]) -> str:
    first = differences(points[0], different)
    if len(points) == 1:
        return f"at {first}" if first else "at the only point"
    return f"at {len(points)} points, the first {first}"
