"""Rows of the results as plain values, in groups, and the estimates in them."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from bench.plan.case import Case, Point
from bench.stats.estimates import Array, Interval

Row = dict[str, Any]
"""A row of the results by column; a missing value is None."""

UNTRIED = ("unsupported", "skipped")
"""Statuses of cases that were never tried; they aren't failures."""


def known(value: Any) -> Any:
    """Return the value of a row, None for NaN."""
    return None if value != value else value


Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return lists of the items by key, in the order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by(rows: Iterable[Row], column: str) -> dict[Any, list[Row]]:
    """Return the rows by their value in a column, in the order of first appearance."""
    return grouped(rows, itemgetter(column))


def point_of(row: Row) -> Point:
    """Return the point of a row."""
    return Case.from_columns(row).point


def plain(table: pd.DataFrame) -> list[Row]:
    """Return the rows in order, with None for missing values."""
    # to Python's own types by column, which is ten times as fast as by row
    columns = [
        [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]
        for _, column in table.items()
    ]
    return [dict(zip(table.columns, values, strict=True)) for values in zip(*columns, strict=True)]


def measured(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that are ok and have a time, in order."""
    return [row for row in rows if is_measured(row)]


def unmeasured(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without a time, in order."""
    return [row for row in rows if not is_measured(row)]


def is_measured(row: Row) -> bool:
    """Return whether a row is ok and has a time."""
    return row.get("status") == "ok" and row.get("latency_s") is not None


def numbers(rows: Sequence[Row], column: str) -> Array:
    """Return the numbers of a column, NaN for missing ones."""
    return np.array([math.nan if row.get(column) is None else row[column] for row in rows], dtype=np.float64)


def speedup_of(row: Row) -> Interval:
    """Return the speed-up of a row over the baseline, with its interval."""
    return Interval(*(float(numbers([row], name)[0]) for name in ("speedup", "speedup_low", "speedup_high")))
