"""Series of rows whose points differ along one axis, and ratios of rows."""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence, Set
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Axis:
    """A column of the points along which they are compared."""

    name: str
    column: str
    symbol: str


TOKENS = Axis("tokens", "num_tokens", "N")
HEADS = Axis("heads", "num_heads", "H")
CHANNELS = Axis("channels", "channels", "C")

AXES = (TOKENS, HEADS, CHANNELS)

SERIES = 3
"""The places of a series. Two are enough only if no longer series shows the same setting along this axis."""


def groups(rows: Iterable[Row], axis: Axis, ignored: Set[str] = frozenset()) -> list[list[Row]]:
    """Return the rows of each series along an axis, of two places or more, in which the columns `ignored` may differ.

    A series of two is left out if the same layer, device, mode and so on has a longer one along that axis: a sweep of
    heads at two numbers of tokens is no sweep of tokens.
    """
    series = [group for group in gathered(rows, [axis], ignored) if len(places(group, axis)) > 1]
    long = {_setting(group) for group in series if len(places(group, axis)) >= SERIES}
    return [group for group in series if len(places(group, axis)) >= SERIES or _setting(group) not in long]


def gathered(rows: Iterable[Row], axes: Collection[Axis], ignored: Set[str] = frozenset()) -> list[list[Row]]:
    """Return groups of rows: in a group, points differ only along these axes and in the columns `ignored`."""

    def setting(row: Row) -> tuple[object, ...]:
        point = point_of(row)
        return _fixed(point, {*ignored}.union(*(moving(axis, point) for axis in axes)))

    return [*grouped(rows, setting).values()]


def moving(axis: Axis, point: Point) -> set[str]:
    """Return the columns that change along an axis.

    The token length changes with the channels if it equals them, and the size of an image with its tokens.
    """
    if axis is CHANNELS and point.token_len == point.channels:
        return {axis.column, "token_len"}
    if axis is TOKENS and point.image_size is not None:
        return {axis.column, "image_size"}
    return {axis.column}


def places(rows: Iterable[Row], axis: Axis) -> tuple[int, ...]:
    """Return the values of the rows on an axis, smallest first."""
    return tuple(sorted({row[axis.column] for row in rows}))


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


def _fixed(point: Point, without: Set[str]) -> tuple[object, ...]:
    return tuple(None if name in without else value for name, value in vars(point).items())


def _setting(group: Sequence[Row]) -> tuple[object, ...]:
    point = point_of(group[0])
    return _fixed(point, {"token_len"}.union(*(moving(axis, point) for axis in AXES)))


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
