"""A comparison of two results as a table for the terminal, worst first."""

from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.compare import VERDICTS
from bench.plan.case import POINT_COLUMNS, Case, Point
from bench.show import units
from bench.show.rows import Row, plain
from bench.show.styles import BAD, GOOD, QUIET, WARNING
from bench.show.words import differences, parts, varying

STYLES = {
    "slower": BAD,
    "newly failing": BAD,
    "missing": WARNING,
    "inconclusive": WARNING,
    "fixed": GOOD,
    "faster": GOOD,
    "baseline": QUIET,
}
"""Styles of the verdicts that stand out; every verdict is also said in words."""

LEGEND = (
    "change: NEW's speed-up over BASE's, each from its own run; minus is slower",
    "base, new: raw times, shown and never judged",
    "inconclusive: neither a change nor its absence is shown; measure more processes",
)


def render(comparison: pd.DataFrame) -> RenderableType:
    """Return the comparison for rich: what all rows share, the table worst first, new failures, and the counts."""
    rows = worst_first(plain(comparison))
    points = [_point(row) for row in rows]
    columns = varying(points)
    shared = parts(points[0], [name for name in POINT_COLUMNS if name not in columns])
    lines = [Text(line) for line in (*_failures(rows, columns), *LEGEND, counts(comparison))]
    return Group(Text(" · ".join(shared), "bold"), _table(rows, columns), *lines)


def counts(comparison: pd.DataFrame) -> str:
    """Return how many rows have each verdict, worst first: `2 slower, 1 missing, 40 equivalent`."""
    number = comparison["verdict"].value_counts()
    return ", ".join(f"{number[verdict]} {verdict}" for verdict in VERDICTS if verdict in number.index)


def worst_first(rows: list[Row]) -> list[Row]:
    """Return the rows by verdict, worst first, and within a verdict by their change, slowest first."""
    rank = list(VERDICTS).index
    return sorted(rows, key=lambda row: (rank(row["verdict"]), 1 if row["change"] is None else row["change"]))


def _table(rows: list[Row], columns: set[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("implementation", overflow="fold")
    table.add_column("point", overflow="fold")
    for title in ("change", "base", "new"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row, columns))
    return table


def _cells(row: Row, columns: set[str]) -> list[Text]:
    verdict = row["verdict"]
    words = (
        row["implementation"],
        differences(_point(row), columns),
        _change(row),
        _side(row, "base"),
        _side(row, "new"),
    )
    return [Text(verdict, style=STYLES.get(verdict, "")), *map(Text, words)]


def _change(row: Row) -> str:
    if row["base_status"] != "ok" or row["new_status"] != "ok" or row["verdict"] == "baseline":
        return ""
    if row["change"] is None:
        return "no ratio"
    half = units.half_width(row["change_low"], row["change_high"])
    return f"{_signed_percent(row['change'])} {'±?' if half is None else f'±{units.percent(half)}'}"


def _signed_percent(ratio: float) -> str:
    return f"{round(100 * (ratio - 1), 1) + 0:+.1f}%"  # + 0 makes -0.0 plain


def _side(row: Row, side: str) -> str:
    """Return the latency of a side, or the status in its place, empty where the side has no such row."""
    status = row[f"{side}_status"]
    return units.seconds(row[f"{side}_latency_s"]) if status == "ok" else status or ""


def _failures(rows: list[Row], columns: set[str]) -> list[str]:
    return [
        f"newly failing: {row['implementation']} {differences(_point(row), columns)}".rstrip()
        + f": {row['new_status']}: {row['new_detail'] or 'no detail'}"
        for row in rows
        if row["verdict"] == "newly failing"
    ]


def _point(row: dict[str, Any]) -> Point:
    return Case.from_columns(row).point
