"""Rows of the results in groups, the estimates in them, and ratios of two."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from bench.plan.case import Case, Point
from bench.stats.contrasts import MOST_FREEDOM
from bench.stats.estimates import PAIR, Array, Estimates, Interval, combined, interval, of_ratios

Row = dict[str, Any]
"""A row of the results by column; a missing value is None."""

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


def log_latencies(rows: Sequence[Row]) -> Estimates:
    """Return the logarithms of the rows' latencies.

    A table doesn't say of how many degrees of freedom their intervals are; they are moderated, so of many.
    """
    value, low, high = (_numbers(rows, name) for name in ("latency_s", "latency_low_s", "latency_high_s"))
    return of_ratios(value, low, high, np.where(np.isnan(low), np.nan, MOST_FREEDOM))


def log_speedups(rows: Sequence[Row]) -> Estimates:
    """Return the logarithms of the rows' speed-ups; the baseline's has no error."""
    columns = ("speedup", "speedup_low", "speedup_high", "log_ratio_freedom")
    return of_ratios(*(_numbers(rows, name) for name in columns), confidence=PAIR)


def _numbers(rows: Sequence[Row], column: str) -> Array:
    return np.array([math.nan if row[column] is None else row[column] for row in rows], dtype=np.float64)


def times_as_fast(one: Row, other: Row) -> Interval:
    """Return how many times as fast as another row of its point a row is, by speed-ups, or else by latencies.

    Two speed-ups share the baseline's scatter, so the interval is too wide, because they are taken as independent.
    """
    logs = log_latencies([other, one])
    if None not in (one["speedup"], other["speedup"]):
        logs = log_speedups([one, other])
    return interval(combined(np.array([1.0, -1.0]), logs), PAIR).exp()
