"""The data of line pictures: one quantity along one axis, all other columns of the points fixed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analyse.series import CHANNELS, HEADS, TOKENS, Axis, by, groups, moving, places, point_of
from bench.plan.case import Point
from bench.show.rows import Row, is_measured, plain
from bench.store.metrics import COLUMNS as METRICS
from bench.store.metrics import Axis as VerticalAxis
from bench.store.metrics import Metric
from bench.store.table import baseline_of


@dataclass(frozen=True)
class Quantity:
    """A metric on the vertical axis of pictures."""

    metric: Metric
    axis: VerticalAxis

    @property
    def name(self) -> str:
        """The first word of its pictures' file names."""
        return self.axis.name


@dataclass(frozen=True)
class Line:
    """The values of one implementation, one for each x of its picture; NaN if it is missing.

    `allocator` is set only if the picture shows several of them.
    """

    implementation: str
    values: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    allocator: str = ""

    @property
    def label(self) -> str:
        """The line's name, unique in its picture."""
        return _label(self.implementation, self.allocator)


@dataclass(frozen=True)
class Failure:
    """The values of x at which an implementation ended with a status other than ok.

    `allocator` is set only if the picture shows several of them.
    """

    implementation: str
    status: str
    xs: tuple[int, ...]
    allocator: str = ""

    @property
    def label(self) -> str:
        """The name beside it."""
        return _label(self.implementation, self.allocator)


@dataclass(frozen=True)
class Picture:
    """The data of a picture; `point` is one of its points and holds the fixed values."""

    quantity: Quantity
    axis: Axis
    point: Point
    xs: tuple[int, ...]
    lines: tuple[Line, ...]
    failures: tuple[Failure, ...]
    baseline: str | None
    rows: tuple[Row, ...]

    @property
    def by_allocator(self) -> bool:
        """Whether implementations have a line for each allocator."""
        return any(line.allocator for line in self.lines)

    @property
    def reference(self) -> str:
        """The label of the rule at 1 in a picture of ratios to the baseline, empty in others."""
        return f"{self.baseline or 'baseline'} = 1" if self.quantity.axis.relative else ""

    @property
    def varying(self) -> set[str]:
        """The columns of the points that are not fixed in the picture."""
        return moving(self.axis, self.point) | ({ALLOCATOR} if self.by_allocator else set())

    @property
    def name(self) -> str:
        """The picture in one word: a file name that stays the same whatever else was measured."""
        by = "-allocator" if self.by_allocator else ""
        return f"{self.quantity.name}-{self.axis.name}{by}-{self.point.short_name(self.varying)}"


QUANTITIES = {metric.name: Quantity(metric, metric.axis) for metric in METRICS.values() if metric.axis}
"""Every quantity that is drawn, by the name of its metric."""

LATENCY = QUANTITIES["latency_s"]

SHOWN = [
    (quantity, axis)
    for axis in (TOKENS, HEADS, CHANNELS)
    for quantity in QUANTITIES.values()
    if axis.name in quantity.axis.over
]

ALLOCATOR = "allocator"


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield every picture that the table has values for.

    A picture shows a series along its axis.
    Points that differ in the allocator alone are also drawn together, a line for each.
    """
    rows, baseline = plain(table), baseline_of(table)
    for quantity, axis in SHOWN:
        yield from filter(None, (picture(group, quantity, axis, baseline) for group in groups(rows, axis)))
    for quantity in (quantity for quantity in QUANTITIES.values() if quantity.axis.by_allocator):
        for group in groups(rows, TOKENS, {ALLOCATOR}):
            parts = by(group, ALLOCATOR)
            if len(parts) > 1:
                yield from filter(None, [picture(group, quantity, TOKENS, baseline, parts)])


def picture(
    group: Sequence[Row],
    quantity: Quantity,
    axis: Axis,
    baseline: str | None,
    by_allocator: Mapping[str, Sequence[Row]] | None = None,
) -> Picture | None:
    """Return the data of a series' picture, None if nothing of this quantity was measured.

    It has a line for each implementation and allocator if it gets the rows under each.
    """
    xs, parts = places(group, axis), by_allocator or {"": group}
    lines = tuple(
        line
        for allocator, part in parts.items()
        for name, rows in by(part, "implementation").items()
        # a ratio of the baseline to itself is 1 by definition: a rule in the picture, not a line
        if not (quantity.axis.relative and name == baseline)
        if any(map(math.isfinite, (line := _line(name, rows, xs, quantity, axis, allocator)).values))
    )
    if not lines:
        return None
    return Picture(
        quantity=quantity,
        axis=axis,
        point=point_of(group[0]),
        xs=xs,
        lines=lines,
        failures=tuple(failure for name, part in parts.items() for failure in _failures(part, axis, name)),
        baseline=baseline,
        rows=tuple(group),
    )


def _line(name: str, rows: Sequence[Row], xs: Sequence[int], quantity: Quantity, axis: Axis, allocator: str) -> Line:
    at = {row[axis.column]: row for row in rows if is_measured(row)}
    columns = (quantity.metric.name, quantity.axis.low, quantity.axis.high)
    values, lows, highs = (tuple(_value(at.get(x), column) for x in xs) for column in columns)
    return Line(name, values, lows, highs, allocator)


def _failures(group: Sequence[Row], axis: Axis, allocator: str) -> Iterator[Failure]:
    for name, rows in by(group, "implementation").items():
        for status in dict.fromkeys(row["status"] for row in rows if row["status"] != "ok"):
            xs = tuple(sorted(row[axis.column] for row in rows if row["status"] == status))
            yield Failure(name, status, xs, allocator)


def _label(implementation: str, allocator: str) -> str:
    return ", ".join(filter(None, (implementation, allocator)))


def _value(row: Row | None, column: str) -> float:
    # a logarithmic axis can't show zero
    value = row.get(column) if row else None
    return float(value) if value is not None and value > 0 else math.nan
