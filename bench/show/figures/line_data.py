"""The data of line pictures: one quantity along one axis, all other columns of the points fixed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analyse.axes import AXES, TOKENS, Axis, groups, moving, places
from bench.analyse.rows import by, point_of
from bench.plan.case import Point
from bench.show.figures import layout
from bench.show.rows import Row, is_measured, plain
from bench.store import units
from bench.store.metrics import COLUMNS as METRICS
from bench.store.metrics import Metric, Unit, VerticalAxis
from bench.store.table import baseline_of

ALLOCATOR = "allocator"


@dataclass(frozen=True)
class Quantity:
    """A metric that has an axis in pictures, with the baseline that it may refer to."""

    metric: Metric
    axis: VerticalAxis
    baseline: str | None

    @property
    def name(self) -> str:
        """The first word of its pictures' file names, and the kind of its charts on pages."""
        return self.axis.name

    @property
    def column(self) -> str:
        """The column of its values."""
        return self.metric.name

    @property
    def heading(self) -> str:
        """The heading of its column in tables."""
        return self.metric.heading.text if self.metric.heading else self.axis.title.lower()

    @property
    def place(self) -> float:
        """The place of its column in tables; that of a metric without a column is behind all others."""
        return self.metric.heading.place if self.metric.heading else math.inf

    @property
    def is_share(self) -> bool:
        """Whether it is a share, which a page draws from 0 on."""
        return self.metric.unit is Unit.SHARE

    def filled(self, text: str) -> str:
        """Return a text in which the baseline is named."""
        return text.format(baseline=self.baseline or "the baseline")

    def ticks(self, low: float, high: float) -> list[float]:
        """Return ticks at round numbers of its unit on a logarithmic axis with these ends."""
        if self.axis.relative:
            return layout.ratios(low, high)
        return (layout.binary if self.metric.unit is Unit.BYTES else layout.decimal)(low, high)

    def tick_label(self, value: float) -> str:
        """Return a value as it is written on the axis."""
        return units.formatted(value, self.metric.unit, trim=True)


def quantities(baseline: str | None) -> list[Quantity]:
    """Return every metric that has an axis."""
    return [Quantity(metric, metric.axis, baseline) for metric in METRICS.values() if metric.axis]


def speedup(baseline: str) -> Quantity:
    """Return the speed-up over a baseline."""
    (quantity,) = (each for each in quantities(baseline) if each.column == "speedup")
    return quantity


def ends_of_speedups(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the ends of an axis that holds 1 and the speed-ups of rows with their intervals."""
    values, lows, highs = (
        [math.nan if row[name] is None else float(row[name]) for row in rows]
        for name in ("speedup", "speedup_low", "speedup_high")
    )
    return layout.limits([1.0, *values], lows, highs)


@dataclass(frozen=True)
class _Labelled:
    """What an implementation has in a picture; `allocator` is set only if the picture shows several of them."""

    implementation: str
    allocator: str

    @property
    def label(self) -> str:
        """The name beside it, unique in its picture."""
        return ", ".join(filter(None, (self.implementation, self.allocator)))


@dataclass(frozen=True)
class Line(_Labelled):
    """The values of one implementation, one for each x of its picture; NaN if it is missing."""

    values: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]


@dataclass(frozen=True)
class Failure(_Labelled):
    """The values of x at which an implementation ended with a status other than ok."""

    status: str
    xs: tuple[int, ...]


@dataclass(frozen=True)
class Picture:
    """The data of a picture; `point` is one of its points and holds the fixed values."""

    quantity: Quantity
    axis: Axis
    point: Point
    xs: tuple[int, ...]
    lines: tuple[Line, ...]
    failures: tuple[Failure, ...]
    rows: tuple[Row, ...]

    @property
    def by_allocator(self) -> bool:
        """Whether implementations have a line for each allocator."""
        return any(line.allocator for line in self.lines)

    @property
    def reference(self) -> str:
        """The label of the rule at 1 in a picture of ratios to the baseline, empty in others."""
        return f"{self.quantity.baseline or 'baseline'} = 1" if self.quantity.axis.relative else ""

    @property
    def varying(self) -> set[str]:
        """The columns of the points that are not fixed in the picture."""
        return moving(self.axis, self.point) | ({ALLOCATOR} if self.by_allocator else set())

    @property
    def name(self) -> str:
        """The picture in one word: a file name that stays the same whatever else was measured."""
        by = "-allocator" if self.by_allocator else ""
        return f"{self.quantity.name}-{self.axis.name}{by}-{self.point.short_name(self.varying)}"


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield every picture that the table has values for.

    A picture shows a series along its axis.
    Points that differ in the allocator alone are also drawn together, a line for each.
    """
    rows, every = plain(table), quantities(baseline_of(table))
    for axis in AXES:
        for quantity in (each for each in every if axis.name in each.axis.over):
            yield from filter(None, (picture(group, quantity, axis) for group in groups(rows, axis)))
    for quantity in (each for each in every if each.axis.by_allocator):
        for group in groups(rows, TOKENS, {ALLOCATOR}):
            parts = by(group, ALLOCATOR)
            if len(parts) > 1:
                yield from filter(None, [picture(group, quantity, TOKENS, parts)])


def picture(
    group: Sequence[Row], quantity: Quantity, axis: Axis, by_allocator: Mapping[str, Sequence[Row]] | None = None
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
        if not (quantity.axis.relative and name == quantity.baseline)
        if any(map(math.isfinite, (line := line_of(name, allocator, rows, xs, quantity, axis)).values))
    )
    if not lines:
        return None
    failures = tuple(failure for allocator, part in parts.items() for failure in _failures(part, axis, allocator))
    return Picture(quantity, axis, point_of(group[0]), xs, lines, failures, tuple(group))


def line_of(name: str, allocator: str, rows: Sequence[Row], xs: Sequence[int], quantity: Quantity, axis: Axis) -> Line:
    """Return the values of an implementation at each x; NaN where it has none."""
    at = {row[axis.column]: row for row in rows if is_measured(row)}
    columns = (quantity.column, quantity.axis.low, quantity.axis.high)
    return Line(name, allocator, *(tuple(_value(at.get(x), column) for x in xs) for column in columns))


def _failures(group: Sequence[Row], axis: Axis, allocator: str) -> Iterator[Failure]:
    for name, rows in by(group, "implementation").items():
        for status in dict.fromkeys(row["status"] for row in rows if row["status"] != "ok"):
            xs = tuple(sorted(row[axis.column] for row in rows if row["status"] == status))
            yield Failure(name, allocator, status, xs)


def _value(row: Row | None, column: str) -> float:
    # a logarithmic axis can't show zero
    value = row.get(column) if row else None
    return float(value) if value is not None and value > 0 else math.nan
