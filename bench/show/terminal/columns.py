"""The columns of the terminal's table, and which of them fit."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.plan.case import Case
from bench.plan.layers import peak_bytes
from bench.show.choice_text import by
from bench.show.rows import Row
from bench.show.terminal.flags import flags
from bench.show.terminal.kernels import algorithm
from bench.store import units
from bench.store.metrics import COLUMNS as METRICS
from bench.store.metrics import Metric

GAP = "  "


@dataclass(frozen=True)
class Column:
    """A heading and the cell of a row; a narrow terminal drops columns of high `rank` first, those of rank 0 never."""

    heading: str
    cell: Callable[[Row], str]
    rank: int = 0
    is_text: bool = False


@dataclass(frozen=True)
class Fitted:
    """A column and its width in characters."""

    column: Column
    width: int


def columns(baseline: str | None) -> list[Column]:
    """Return all columns from left to right: those of metrics and the others."""

    def remarks(row: Row) -> str:
        return "".join(flag.letter for flag in flags(row))

    placed = [
        (0, Column("", lambda row: str(row["implementation"]), is_text=True)),
        (10, Column("", remarks, is_text=True)),
        (25, Column("", _latency_interval, rank=1, is_text=True)),
        (35, Column("", _speedup_interval, is_text=True)),
        (45, Column("slower by", slower_by)),
        (60, Column("predicted", _peak_of_prediction, rank=7)),
        (110, Column("pays after", lambda row: _calls(row["calls_until_paid"]), rank=9)),
        *((metric.heading.place, _of_metric(metric, baseline)) for metric in METRICS.values() if metric.heading),
    ]
    return [column for _, column in sorted(placed, key=lambda each: each[0])]


def _of_metric(metric: Metric, baseline: str | None) -> Column:
    def cell(row: Row) -> str:
        if metric.name == "speedup" and row["implementation"] == baseline:
            return "baseline"
        if metric.name == "kernels":
            return algorithm(row["kernels"])
        if metric.name == "memory_bytes" and row["peak_bytes"] is None and row["memory_bytes"] is not None:
            return f"{units.size(row['memory_bytes'])} by the system"
        return units.formatted(row[metric.name], metric.unit)

    text, rank = (metric.heading.text, metric.heading.rank) if metric.heading else (metric.name, 0)
    return Column(text, cell, rank, is_text=metric.kind in (str, tuple))


def fit(candidates: Sequence[Column], rows: Sequence[Row], width: int, gap: str = GAP) -> list[Fitted]:
    """Return the columns that aren't empty for these rows and fit side by side into `width` characters."""
    fitting = [
        Fitted(column, max(len(column.heading), *map(len, cells)))
        for column in candidates
        if any(cells := [column.cell(row) for row in rows])
    ]
    while sum(each.width + len(gap) for each in fitting) - len(gap) > width and any(
        each.column.rank for each in fitting
    ):
        fitting.remove(max(fitting, key=lambda each: each.column.rank))
    return fitting


def line(fitted: Sequence[Fitted], row: Row | None, gap: str = GAP) -> str:
    """Return the cells of a row, or the headings, side by side: text to the left, numbers to the right."""
    cells = ((each, each.column.cell(row) if row else each.column.heading) for each in fitted)
    aligned = (cell.ljust(each.width) if each.column.is_text else cell.rjust(each.width) for each, cell in cells)
    return gap.join(aligned).rstrip()


def slower_by(row: Row) -> str:
    """Return by how much a row is slower than the fastest of its point: `0 to 2.9%`, empty without a bound."""
    low, high = row["slowdown_low"], row["slowdown_high"]
    return "" if low is None or high is None else by(low, high).removeprefix("by ")


def _latency_interval(row: Row) -> str:
    half = units.half_width(row["latency_low_s"], row["latency_high_s"])
    return f"±{units.percent(half)}" if half is not None else ""


def _peak_of_prediction(row: Row) -> str:
    predicted = peak_bytes(Case.from_columns(row))
    if predicted is None or not row["peak_bytes"]:
        return ""
    return f"{units.size(predicted)} {row['peak_bytes'] / predicted - 1:+.1%}"


def _calls(number: float | None) -> str:
    if number is None:
        return ""
    return "never" if math.isinf(number) else f"{number:,.0f} calls"


def _speedup_interval(row: Row) -> str:
    low, high = row["speedup_low"], row["speedup_high"]
    if low is None or high is None or low == high:
        return ""
    return f"[{units.ratio(low)[:-1]}, {units.ratio(high)[:-1]}]"
