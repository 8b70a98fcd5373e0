"""Pictures of one metric along one axis: a line for each implementation, with its name at the end."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter

import pandas as pd
from matplotlib.axes import Axes

from bench.analyse.axes import AXES, Axis, exponent, groups, last_two, moving, places
from bench.analyse.rows import Row, by, grouped, is_measured, plain, point_of
from bench.show.charts.sheet import Picture, at_places, finished, logarithmic, look, name_ends, sheet
from bench.show.palette import COLOURS, style
from bench.show.rows import facts, origins, process_count
from bench.show.text import LONGEST_NAME, listed, middle
from bench.stats.estimates import CONFIDENCE
from bench.store import units
from bench.store.metrics import COLUMNS as METRICS
from bench.store.metrics import Metric, Unit
from bench.store.table import baseline_of

MOST_PLACES = 2
"""The most places without a time that a note names for an implementation."""


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield a picture for each series and metric that the table has values for."""
    rows, baseline = plain(table), baseline_of(table) or "the baseline"
    for axis in AXES:
        for metric in (each for each in METRICS.values() if each.axis and axis.name in each.axis.over):
            yield from filter(None, (picture(group, metric, axis, baseline) for group in groups(rows, axis)))


def picture(group: Sequence[Row], metric: Metric, axis: Axis, baseline: str) -> Picture | None:
    """Return the picture of a series, None if this metric was not measured."""
    of, drawn = metric.axis, [row for row in group if value(row, metric)]
    if of is None or not drawn:
        return None
    point = point_of(group[0])
    varying = moving(axis, point)
    axes = sheet()
    _set_up_along(axes, axis, group, varying)
    set_up(axes, "y", metric, drawn, baseline)
    ends = []
    for name in by(drawn, "implementation"):
        rows = sorted((row for row in group if row["implementation"] == name), key=itemgetter(axis.column))
        grows = "" if of.relative or axis.is_share else _exponent(rows, metric, axis)
        label = f"{middle(name, LONGEST_NAME)}  {grows}".strip()
        ends.append((label, *_draw(axes, rows, metric, axis), style(name).colour))
    name_ends(axes, ends)
    return finished(
        axes,
        f"{of.name}-{axis.name}-{point.short_name(varying)}",
        f"{of.title.format(baseline=baseline)} against {axis.name}",
        facts(point, group, varying),
        [*without_time(group, axis), *interval(metric, drawn), *origins(group)],
    )


def value(row: Row, metric: Metric) -> tuple[float, float, float] | None:
    """Return the value of a row and the ends of its interval, NaN without one; None if nothing is drawn.

    The baseline isn't drawn among ratios to it.
    """
    of, number = metric.axis, row.get(metric.name)
    if of is None or not is_measured(row) or not number or number <= 0:
        return None
    if of.relative and row["implementation"] == row["baseline"]:
        return None
    low, high = (row.get(name) if name else None for name in (of.low, of.high))
    return float(number), *(math.nan if end is None else float(end) for end in (low, high))  # type: ignore[return-value]


def set_up(axes: Axes, along: str, metric: Metric, drawn: Sequence[Row], baseline: str) -> None:
    """Set up an axis for the values of rows; a line at 1 is the baseline."""
    of = metric.axis
    assert of
    values, lows, highs = zip(*filter(None, (value(row, metric) for row in drawn)), strict=True)
    write = partial(units.formatted, unit=metric.unit, trim=True)
    base = 2 if metric.unit is Unit.BYTES else 10
    logarithmic(axes, along, (*values, *[1.0] * of.relative), write, lows=lows, highs=highs, base=base)
    axes.set(**{f"{along}label": of.label.format(baseline=baseline)})
    if of.relative:
        (axes.axhline if along == "y" else axes.axvline)(1.0, color=COLOURS["ink"], linewidth=1.0)


def interval(metric: Metric, rows: Sequence[Row], what: str = "band") -> Iterator[str]:
    """Yield the meaning of the bands of measured rows."""
    if metric.axis and metric.axis.low:
        has_some = any(row[metric.axis.low] is not None for row in rows)
        yield f"{what}: {CONFIDENCE:.0%} interval, {process_count(rows)}" if has_some else process_count(rows)


def without_time(group: Sequence[Row], axis: Axis) -> Iterator[str]:
    """Yield for each status the implementations and places: `oom: eager at 1024`, `unsupported: mha`."""
    everywhere = places(group, axis)
    for status, rows in by((row for row in group if not is_measured(row)), "status").items():
        by_places = grouped(by(rows, "implementation").items(), lambda each: places(each[1], axis))
        words = []
        for at, members in by_places.items():
            named = [units.percent(place) if axis.is_share else str(place) for place in at]
            few = listed(named) if len(at) <= MOST_PLACES else f"{len(at)} places"
            names = ", ".join(str(name) for name, _ in members)
            words.append(names if at == everywhere else f"{names} at {few}")
        yield f"{status}: {'; '.join(words)}"


def _set_up_along(axes: Axes, axis: Axis, rows: Sequence[Row], varying: set[str]) -> None:
    """Set up the horizontal axis of a series, with a tick at each place."""
    at = places(rows, axis)
    if axis.is_share:
        axes.set(xlim=(0, 1), xticks=at, xticklabels=[*map(units.percent, at)])
    else:
        at_places(axes, at)
    axes.set_xlabel(f"{axis.title}{' (token length = channels)' if 'token_len' in varying else ''}")


def _draw(axes: Axes, rows: Sequence[Row], metric: Metric, axis: Axis) -> tuple[float, float]:
    """Draw the line of an implementation with its band, broken at missing values, and return its end."""
    of = style(rows[0]["implementation"])
    xs = [row[axis.column] for row in rows]
    middles, lows, highs = zip(*(value(row, metric) or (math.nan,) * 3 for row in rows), strict=True)
    axes.plot(xs, middles, label=rows[0]["implementation"], **look(of))
    axes.fill_between(xs, lows, highs, color=of.colour, alpha=0.15, linewidth=0)
    return [(float(x), float(y)) for x, y in zip(xs, middles, strict=True) if not math.isnan(y)][-1]


def _exponent(rows: Sequence[Row], metric: Metric, axis: Axis) -> str:
    """Return the growth of a line between its last two places: `N^1.9`."""
    last = last_two(rows, axis, metric.name)
    slope = exponent(*last, axis, metric.name) if last else None
    return "" if slope is None else f"{axis.symbol}^{round(slope, 1) + 0:.1f}"  # + 0 makes -0.0 plain
