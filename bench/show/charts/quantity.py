"""Quantities: metrics that have an axis in pictures, with their marks along it, in files and on pages."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench.analyse.axes import Axis, places
from bench.show.figures import layout
from bench.show.picture import Kind, Marks, Scale, Shape
from bench.show.rows import Row
from bench.store import units
from bench.store.metrics import COLUMNS as METRICS
from bench.store.metrics import Heading, Metric, Unit, VerticalAxis
from impls.catalogue import DASHED, Style

WHOLE = (0.0, 1.0)
"""The ends of an axis of shares."""

ROW_IN, ROOM_IN = 0.13, 0.14
"""In inches: the height of an implementation at a point, and the room around a point."""


@dataclass(frozen=True)
class Quantity:
    """A metric that has an axis in pictures, with its heading in tables, and the baseline that it may refer to."""

    metric: Metric
    axis: VerticalAxis
    heading: Heading
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
    def is_share(self) -> bool:
        """Whether it is a share, which is drawn from 0 on."""
        return self.metric.unit is Unit.SHARE

    @cached_property
    def columns(self) -> list[str]:
        """The columns that are drawn: the values, and the ends of their intervals."""
        return [name for name in (self.column, self.axis.low, self.axis.high) if name]

    def filled(self, text: str) -> str:
        """Return a text in which the baseline is named."""
        return text.format(baseline=self.baseline or "the baseline")

    def drawn(self, row: Row) -> dict[str, float | None]:
        """Return the values of a row that are drawn; a logarithmic axis has no 0, and the baseline's ratios are 1."""
        is_one = self.axis.relative and row["implementation"] == self.baseline
        values = {name: row.get(name) for name in self.columns}
        return {name: float(of) if of and of > 0 and not is_one else None for name, of in values.items()}

    def scale(self, rows: Iterable[Mapping[str, Any]], gap: float = layout.LEAST_GAP) -> Scale:
        """Return the axis around the values of rows; the distance of two ticks is at least `gap` of it."""
        own = [*rows]
        values, lows, highs = (
            [row[name] for row in own if name and row.get(name) is not None]
            for name in (self.column, self.axis.low, self.axis.high)
        )
        title = self.filled(self.axis.label)
        if self.is_share:
            top = max(1.0, *values) if values else 1.0
            ticks = layout.even(0.0, top)
            return Scale(title=title, kind=Kind.LINEAR, ends=(0.0, top), ticks=ticks, labels=[*map(self.label, ticks)])
        ends = layout.limits([*([1.0] if self.axis.relative else []), *values], lows, highs)
        return Scale.log(title, ends, self._ticks(*ends, gap), self.label)

    def _ticks(self, low: float, high: float, gap: float) -> list[float]:
        if self.axis.relative:
            return layout.ratios(low, high, gap)
        return (layout.binary if self.metric.unit is Unit.BYTES else layout.decimal)(low, high)

    def label(self, value: float) -> str:
        """Return a value as it is written on the axis."""
        return units.formatted(value, self.metric.unit, trim=True)

    def along(self, x: str, by: str = "implementation", styles: Mapping[str, Style] | None = None) -> list[Marks]:
        """Return its marks along the field `x`: the rule at 1, bands and lines."""
        own: dict[str, Any] = {"x": x, "by": by, "styles": styles or {}}
        marks = [*self._at_1(along="y")]
        if self.axis.low:
            marks.append(Marks(shape=Shape.BAND, y=self.axis.low, y2=self.axis.high, **own))
        marks.append(Marks(shape=Shape.LINE, y=self.column, width=1.8, size=7.5, beside=True, **own))
        return marks

    def in_rows(self) -> list[Marks]:
        """Return its marks in a row for each of some points: the rule at 1, intervals and points."""
        own: dict[str, Any] = {"y": "label", "by": "implementation", "side_by_side": True}
        marks = [*self._at_1(along="x")]
        if self.axis.low:
            marks.append(Marks(shape=Shape.RULE, x=self.axis.low, x2=self.axis.high, **own))
        return [*marks, Marks(shape=Shape.POINT, x=self.column, size=6, beside=True, **own)]

    def _at_1(self, along: str) -> list[Marks]:
        place: dict[str, Any] = {along: 1.0}
        if self.axis.relative:
            name = self.baseline or "the baseline"
            rows = [{"implementation": name, "words": f"{name} = 1"}]
            named: dict[str, Any] = {"rows": rows, "by": "implementation", "text": "words", "beside": True}
            return [Marks(shape=Shape.RULE, width=1.2, **place, **named)]
        return [Marks(shape=Shape.RULE, rows=[{}], dash=DASHED, **place)] if self.is_share else []


def quantities(baseline: str | None) -> list[Quantity]:
    """Return every metric that has an axis; it has a column in tables too."""
    return [
        Quantity(metric, metric.axis, metric.heading, baseline)
        for metric in METRICS.values()
        if metric.axis and metric.heading
    ]


def quantity(column: str, baseline: str | None = None) -> Quantity:
    """Return the quantity of a column."""
    return next(each for each in quantities(baseline) if each.column == column)


def along(axis: Axis, rows: Iterable[Row], varying: Collection[str]) -> Scale:
    """Return the axis of a series with its places, in which some columns vary."""
    at = places(rows, axis)
    if axis.is_share:
        return Scale(title=axis.title, kind=Kind.LINEAR, ends=WHOLE, ticks=at, labels=[*map(units.percent, at)])
    follows = "  (token length = channels)" if "token_len" in varying else ""
    return Scale.log(f"{axis.title}{follows}", layout.padded(at[0], at[-1]), at)
