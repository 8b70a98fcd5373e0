"""Quantities: metrics that have an axis in pictures."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes

from bench.show.charts.sheet import logarithmic
from bench.show.palette import light
from bench.show.rows import Row
from bench.store import units
from bench.store.metrics import COLUMNS as METRICS
from bench.store.metrics import Metric, Unit, VerticalAxis


@dataclass(frozen=True)
class Quantity:
    """A metric that has an axis in pictures, and the baseline that it may refer to."""

    metric: Metric
    axis: VerticalAxis
    baseline: str | None

    def filled(self, text: str) -> str:
        """Return a text in which the baseline is named."""
        return text.format(baseline=self.baseline or "the baseline")

    def drawn(self, row: Row) -> tuple[float, float, float] | None:
        """Return the value of a row and the ends of its interval, NaN if it has none; None if nothing is drawn."""
        is_one = self.axis.relative and row["implementation"] == self.baseline
        value = row.get(self.metric.name)
        if is_one or not value or value <= 0:
            return None
        ends = (row.get(name) if name else None for name in (self.axis.low, self.axis.high))
        low, high = (math.nan if end is None else float(end) for end in ends)
        return float(value), low, high

    def set_up(self, axes: Axes, rows: Iterable[Row], along: str = "y") -> None:
        """Set the axis for the values of rows; a line at 1 is the baseline."""
        drawn = [each for row in rows if (each := self.drawn(row))]
        values, lows, highs = zip(*drawn, strict=True) if drawn else ((1.0,), (), ())
        write, title = partial(units.formatted, unit=self.metric.unit, trim=True), self.filled(self.axis.label)
        base = 2 if self.metric.unit is Unit.BYTES else 10
        one = (1.0,) if self.axis.relative else ()
        logarithmic(axes, along, (*values, *one), write, lows=lows, highs=highs, base=base)
        axes.set(**{f"{along}label": title})
        if self.axis.relative:
            line = axes.axhline if along == "y" else axes.axvline
            line(1.0, color=light("ink"), linewidth=1.2, label=f"{self.filled('{baseline}')} = 1")


def quantities(baseline: str | None) -> list[Quantity]:
    """Return every metric that has an axis."""
    return [Quantity(metric, metric.axis, baseline) for metric in METRICS.values() if metric.axis]


def quantity(column: str, baseline: str | None = None) -> Quantity:
    """Return the quantity of a column."""
    return next(each for each in quantities(baseline) if each.metric.name == column)
