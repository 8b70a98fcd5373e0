"""The axes of a sweep, and series of rows whose points differ along one of them."""

import math
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from operator import itemgetter

from bench.analyse.rows import Row, by, grouped, point_of
from bench.plan.case import Point


@dataclass(frozen=True)
class Axis:
    """A column along which points are compared: a point's own, or a metric derived from it.

    Values of one that `is_share` go from 0 to 1.
    """

    name: str
    column: str
    symbol: str = ""
    is_share: bool = False

    @property
    def title(self) -> str:
        """The axis's name with its symbol."""
        return f"{self.name} {self.symbol}".strip()


TOKENS = Axis("tokens", "num_tokens", "N")
HEADS = Axis("heads", "num_heads", "H")
CHANNELS = Axis("channels", "channels", "C")
KEYS = Axis("keys", "num_kv_tokens", "M")

PADDING = Axis("padding", "padding", is_share=True)

SIZES = (TOKENS, HEADS, CHANNELS, KEYS)
"""The axes along which work grows."""

AXES = (*SIZES, PADDING)

SERIES = 3
"""The fewest values in a series. Two are enough only if no longer series shows the same setting along this axis."""


def groups(rows: Iterable[Row], axis: Axis) -> list[list[Row]]:
    """Return the rows of each series along an axis, with two values or more.

    Rows without a value on the axis, such as keys that are the tokens themselves, are in no series.
    A series of two is left out if the same layer, device, mode and so on has a longer one along that axis: a sweep of
    heads at two numbers of tokens isn't a sweep of tokens.
    """
    placed = [row for row in rows if row.get(axis.column) is not None]
    series = [group for group in gathered(placed, [axis]) if len(places(group, axis)) > 1]
    long = {_setting(group) for group in series if len(places(group, axis)) >= SERIES}
    return [group for group in series if len(places(group, axis)) >= SERIES or _setting(group) not in long]


def gathered(rows: Iterable[Row], axes: Collection[Axis], ignored: Set[str] = frozenset()) -> list[list[Row]]:
    """Return groups of rows whose points differ only along these axes and in the columns `ignored`."""

    def setting(row: Row) -> tuple[object, ...]:
        point = point_of(row)
        return _fixed(point, {*ignored}.union(*(moving(axis, point) for axis in axes)))

    return [*grouped(rows, setting).values()]


def moving(axis: Axis, point: Point) -> set[str]:
    """Return the columns that change along an axis.

    Widths of tokens and of a context that equal the channels change with them, the size of an image with its tokens,
    and the share of padding with the lengths of items.
    """
    if axis is PADDING:
        return {"lengths"}
    if axis is CHANNELS and point.token_len == point.channels:
        return {axis.column, "token_len", *(["context_dim"] if point.context_dim == point.channels else [])}
    if axis is TOKENS and point.image_size is not None:
        return {axis.column, "image_size"}
    return {axis.column}


def places(rows: Iterable[Row], axis: Axis) -> tuple[int, ...]:
    """Return the rows' values on an axis, smallest first."""
    return tuple(sorted({row[axis.column] for row in rows}))


@dataclass(frozen=True)
class Exponent:
    """An implementation's growth between the last two values of a series: 2 if twice as many cost four times as much.

    `point` is the last point; an unknown exponent is None.
    """

    axis: Axis
    implementation: str
    point: Point
    start: int
    end: int
    latency: float | None
    memory: float | None


def exponents(rows: Sequence[Row]) -> list[Exponent]:
    """Return the exponents of each implementation in each series along tokens, heads, channels and keys."""
    found = []
    for axis in SIZES:
        for group in groups(rows, axis):
            for name, own in by(group, "implementation").items():
                if last := last_two(own, axis, "latency_s"):
                    start, end = last
                    at = (start[axis.column], end[axis.column])
                    latency, memory = (exponent(*last, axis, column) for column in ("latency_s", "memory_bytes"))
                    found.append(Exponent(axis, str(name), point_of(end), *at, latency, memory))
    return found


def last_two(rows: Iterable[Row], axis: Axis, column: str) -> tuple[Row, Row] | None:
    """Return an implementation's last two rows with a value in a column, None if it has fewer."""
    known = sorted((row for row in rows if row["status"] == "ok" and row[column]), key=itemgetter(axis.column))
    return (known[-2], known[-1]) if len(known) > 1 else None


def exponent(start: Row, end: Row, axis: Axis, column: str) -> float | None:
    """Return the slope of a column against the axis, both as logarithms; None if a row has no value."""
    if not start[column] or not end[column]:
        return None
    return math.log(end[column] / start[column]) / math.log(end[axis.column] / start[axis.column])


def _fixed(point: Point, without: Set[str]) -> tuple[object, ...]:
    return tuple(None if name in without else value for name, value in vars(point).items())


def _setting(group: Sequence[Row]) -> tuple[object, ...]:
    point = point_of(group[0])
    has_context = point.num_kv_tokens is not None
    return *_fixed(point, {"token_len"}.union(*(moving(axis, point) for axis in AXES))), has_context
