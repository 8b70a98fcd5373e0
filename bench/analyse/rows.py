"""Rows of the results in groups, the estimates in them, and pairs of two."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from bench.plan.case import Case, Point
from bench.plan.verdicts import FASTER, OPEN, SLOWER
from bench.stats.contrasts import MOST_FREEDOM
from bench.stats.estimates import Array, Estimates, Interval, of_ratios, t_quantile

Row = dict[str, Any]
"""A row of the results by column; a missing value is None."""

UNTRIED = ("unsupported", "skipped")
"""Statuses of cases that were never tried; nothing went wrong."""


def known(value: Any) -> Any:
    """Return the value of a row, None for NaN."""
    return None if value != value else value


Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return lists of the items by their key, in the order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by(rows: Iterable[Row], column: str) -> dict[Any, list[Row]]:
    """Return the rows by their value in a column, in the order of first appearance."""
    return grouped(rows, itemgetter(column))


def point_of(row: Row) -> Point:
    """Return the point that a row was measured at."""
    return Case.from_columns(row).point


def plain(table: pd.DataFrame) -> list[Row]:
    """Return the rows in order, with None for what is missing."""
    # Python's own types column by column, which is ten times as fast as row by row
    columns = [
        [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]
        for _, column in table.items()
    ]
    return [dict(zip(table.columns, values, strict=True)) for values in zip(*columns, strict=True)]


def log_latencies(rows: Sequence[Row]) -> Estimates:
    """Return the logarithms of the rows' latencies.

    A table doesn't say of how many degrees of freedom their intervals are; they are moderated, so of many.
    """
    value, low, high = (numbers(rows, name) for name in ("latency_s", "latency_low_s", "latency_high_s"))
    return of_ratios(value, low, high, np.where(np.isnan(low), np.nan, MOST_FREEDOM))


def numbers(rows: Sequence[Row], column: str) -> Array:
    """Return the numbers of a column, NaN for what a row lacks."""
    return np.array([math.nan if row.get(column) is None else row[column] for row in rows], dtype=np.float64)


@dataclass(frozen=True)
class Pair:
    """Two implementations of a point: how many times as fast `one` is as `other`, with its interval.

    All that is said of the two follows from it. It is UNKNOWN if they were not measured in the same processes.
    """

    one: str
    other: str
    times: Interval

    @property
    def verdict(self) -> str:
        """FASTER or SLOWER if `one` is shown to be so, else OPEN."""
        return shown_by(self.times)


def shown_by(ratio: Interval) -> str:
    """Return FASTER or SLOWER if the interval of a speed-up shows it, else OPEN."""
    return FASTER if ratio.low > 1 else SLOWER if ratio.high < 1 else OPEN


def pair(one: Row, other: Row) -> Pair:
    """Return the pair of two rows of a point.

    A table has the intervals of pairs with the baseline. Of two other rows it has the ratio, about its error, and the
    bounds that hold for all their pairs; the interval says no more than these.
    """
    names = str(one["implementation"]), str(other["implementation"])
    if other["implementation"] == one["baseline"]:
        return Pair(*names, speedup_of(one))
    if one["implementation"] == one["baseline"]:
        of = speedup_of(other)
        return Pair(*names, Interval(1 / of.value, 1 / of.high, 1 / of.low))
    return Pair(*names, _between(one, other).exp())


def speedup_of(row: Row) -> Interval:
    """Return the pair's interval of a row and the baseline."""
    return Interval(*(float(numbers([row], name)[0]) for name in ("speedup", "speedup_low", "speedup_high")))


def _between(one: Row, other: Row) -> Interval:
    """Return the log ratio of the time of `other` to that of `one`, with an interval that agrees with their bounds."""
    rows = [one, other]
    logs, lows, highs = (np.log(numbers(rows, name)) for name in ("slowdown", "slowdown_low", "slowdown_high"))
    freedom = np.nanmin([*numbers(rows, "log_ratio_freedom"), MOST_FREEDOM])
    half = t_quantile(freedom) * np.hypot(*numbers(rows, "log_time_error"))
    value = logs[1] - logs[0]
    low, high = max(min(value - half, lows[1]), -highs[0]), min(max(value + half, -lows[0]), highs[1])
    return Interval(float(value), float(low), float(high))
