"""What to use where on which machine, as a table in the terminal."""

from collections.abc import Mapping

import pandas as pd
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bench.plan.grid import machine_columns, without_columns
from bench.show.choice_text import choice_of, words
from bench.show.point_text import names, order
from bench.show.rows import Row, by_point
from bench.store import units

MOST_WORDS = 40
"""The longest words on a point."""

MOST_POINTS = 100
"""The most points of the table; those at which machines disagree come first."""


def choices(tables: Mapping[str, pd.DataFrame]) -> RenderableType:
    """Return what to use at each point, a column for each machine, with its speed-up over the baseline.

    Columns that follow from the machine don't distinguish points.
    """
    rows = {name: by_point(table) for name, table in tables.items()}
    ignored = machine_columns(rows.values())
    cells = {
        name: {without_columns(point, ignored): _cell(own) for point, own in of_point.items()}
        for name, of_point in rows.items()
    }
    points = list(dict.fromkeys(point for each in cells.values() for point in each))
    labels = names(points)
    ordered = sorted(
        points, key=lambda point: (_agree([each.get(point, ("", ""))[0] for each in cells.values()]), order(point))
    )
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", title_justify="left")
    for title in ("what to use where", *tables):
        grid.add_column(title, overflow="fold")
    for point in ordered[:MOST_POINTS]:
        grid.add_row(labels[point], *(Text(each.get(point, ("", "not measured"))[1]) for each in cells.values()))
    if len(points) > MOST_POINTS:
        grid.add_row(f"… and {len(points) - MOST_POINTS:,} more points")
    return grid


def _agree(names: list[str]) -> bool:
    return len({*names}) == 1


def _cell(rows: list[Row]) -> tuple[str, str]:
    """Return what machines may agree on at a point, and its words."""
    chosen = choice_of(rows)
    if not chosen.name:
        return "", words(chosen)
    first = next(row for row in rows if row["implementation"] == chosen.name)
    speedup = f" {units.ratio(first['speedup'])}" if first["speedup"] is not None else ""
    return chosen.name, f"{words(chosen, MOST_WORDS)}{speedup}"
