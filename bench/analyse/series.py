"""Series of rows whose points differ along one axis, ratios of rows, and where along it the fastest changes."""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from bench.plan.case import Case, Point
from bench.stats.contrasts import MOST_FREEDOM
from bench.stats.estimates import PAIR, Array, Estimates, Interval, combined, half_widths, interval, of_ratios

Row = dict[str, Any]
"""A row of the results by column; a missing value is None."""

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)

STEPS = 200
"""Steps between two measured places: neighbours of a sweep lie less than tenfold apart, so a step is about 1 %."""

Leaders = Mapping[int, Sequence[str]]
"""The implementations that may be the fastest at each number of tokens, the one to use first."""


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


@dataclass(frozen=True)
class Crossover:
    """The number of tokens from which `after` is faster than `before`, which was the fastest until then.

    The interval ends at 0 or infinity if no measurement bounds it.
    """

    before: str
    after: str
    tokens: Interval


def crossovers(rows: Sequence[Row], leaders: Leaders) -> list[Crossover]:
    """Return the numbers of tokens at which the fastest changes, along the measured rows of a series.

    There is a change only if one of both is shown to be slower on at least one side.
    """
    changes = _changes(leaders) if any(leaders.values()) else ()
    return [crossover for change in changes if (crossover := _crossover(rows, *change))]


def times_as_fast(one: Row, other: Row) -> Interval:
    """Return how many times as fast as another row of its point a row is."""
    return interval(combined(np.array([-1.0, 1.0]), _speeds([other], [one])), PAIR).exp()


def _changes(leaders: Leaders) -> Iterator[tuple[str, str, int, int]]:
    """Yield for each change the leader before it and after it, the last place of the one and the first of the other.

    A leader stays the leader while it may be the fastest. At the last place another one may lead that was shown to be
    slower before: there a change begins.
    """
    places = sorted(place for place, names in leaders.items() if names)
    since = led = places[0]
    leader = leaders[led][0]
    for place in places[1:]:
        fastest = leaders[place][0]
        if leader not in leaders[place]:
            yield leader, fastest, led, place
            leader, since = fastest, place
        if fastest == leader:
            led = place
    fastest = leaders[places[-1]][0]
    if fastest != leader and any(fastest not in leaders[place] for place in places if place >= since):
        yield leader, fastest, led, places[-1]


def _crossover(rows: Sequence[Row], before: str, after: str, start: int, end: int) -> Crossover | None:
    """Return the last place between start and end at which the ratio of both passes 1, None if it never does.

    It never does if one of them wasn't measured there, so that the other was the fastest.
    """
    at = [{row[TOKENS.column]: row for row in by(rows, "implementation")[name]} for name in (before, after)]
    shared = sorted(at[0].keys() & at[1].keys())
    if len(shared) < 2:
        return None
    speeds = _speeds([at[0][place] for place in shared], [at[1][place] for place in shared])
    logs = np.log(np.array(shared, dtype=np.float64))
    ratios = _interpolated(speeds, logs, logs).value
    passed = [
        float(np.interp(0.0, ratios[index : index + 2], logs[index : index + 2]))
        for index, (low, high) in enumerate(pairwise(shared))
        if start <= low and high <= end and ratios[index] < 0 <= ratios[index + 1]
    ]
    if not passed:
        return None
    return Crossover(before, after, Interval(math.exp(passed[-1]), *_bounds(speeds, logs, passed[-1])))


def _bounds(speeds: Estimates, places: Array, crossover: float) -> tuple[float, float]:
    """Return the numbers of tokens around a crossover at which the ratio's interval leaves 1 (Fieller 1954)."""
    gaps = [np.linspace(low, high, STEPS, endpoint=False) for low, high in pairwise(places)]
    logs = np.concatenate([*gaps, places[-1:]])
    of = _interpolated(speeds, places, logs)
    half = half_widths(of)
    if np.isnan(half).all():
        return math.nan, math.nan
    earlier, later = logs[(logs < crossover) & (of.value < -half)], logs[(logs > crossover) & (of.value > half)]
    return math.exp(max(earlier, default=-math.inf)), math.exp(min(later, default=math.inf))


def _interpolated(speeds: Estimates, places: Array, logs: Array) -> Estimates:
    """Return the log ratios of two implementations at `logs`, linear between the logarithms of the measured places.

    `speeds` are the logarithms of one's speeds at all places, then those of the other's.
    """
    weights = np.stack([np.interp(logs, places, each) for each in np.eye(len(places))], axis=-1)  # [logs, places]
    return combined(np.concatenate([-weights, weights], axis=-1), speeds)


def _speeds(before: Sequence[Row], after: Sequence[Row]) -> Estimates:
    """Return the logarithms of speeds, by their ratios to the baseline, or else by latencies.

    Two ratios share the baseline's scatter, so their intervals are too wide if they are taken as independent.
    """
    pairs = list(zip(before, after, strict=True))
    paired = np.tile([None not in (one["speedup"], other["speedup"]) for one, other in pairs], 2)
    ratios, latencies = log_speedups([*before, *after]), log_latencies([*before, *after])
    return Estimates(
        np.where(paired, ratios.value, -latencies.value),
        np.where(paired, ratios.error, latencies.error),
        np.where(paired, ratios.freedom, latencies.freedom),
    )
