"""The picture of points that no line joins: a row for each, with the speed-ups and their intervals."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from bench.analyse.axes import AXES, groups
from bench.analyse.rows import by, grouped, point_of
from bench.plan.case import Point
from bench.plan.grid import model_of
from bench.show.charts.quantity import quantity
from bench.show.charts.sheet import Picture, finished, marks, named_beside, sheet
from bench.show.palette import style
from bench.show.rows import Row, facts, measured, origins, plain, process_count
from bench.show.text import LONGEST_NAME, names, varying
from bench.store.table import baseline_of

MOST = 40
"""Of more points there is no picture: it would be longer than a screen."""

ROW_IN, ROOM_IN, SLOT = 0.13, 0.14, 0.8
"""The height of an implementation at a point and the room around it, in inches; the share of it that marks take."""


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield the picture of all points of a table if two or more are in no series, and if something has a speed-up."""
    rows, baseline = plain(table), baseline_of(table)
    points = grouped(rows, point_of)
    joined = {point_of(row) for axis in AXES for group in groups(rows, axis) for row in group}
    has_speedup = any(row["speedup"] is not None and row["implementation"] != baseline for row in measured(rows))
    if baseline and len(points) - len(joined) > 1 and len(points) <= MOST and has_speedup:
        yield picture(points, baseline)


def picture(points: Mapping[Point, Sequence[Row]], baseline: str) -> Picture:
    """Return the picture of points with their rows, the one on top at which the first implementation is fastest."""
    speedup, named = quantity("speedup", baseline), labels(points)
    every = [row for own in points.values() for row in own]
    series = by([row for row in measured(every) if speedup.drawn(row)], "implementation")
    gains = {named[point_of(row)]: row["speedup"] for row in next(iter(series.values()))}
    order = sorted(named.values(), key=lambda label: -gains.get(label, 0.0))
    ((axes,),) = sheet([len(points) * (ROOM_IN + ROW_IN * len(series))])
    speedup.set_up(axes, every, "x")
    for number, (name, rows) in enumerate(series.items()):
        shift = SLOT * ((number + 0.5) / len(series) - 0.5)
        xs, lows, highs = zip(*filter(None, map(speedup.drawn, rows)), strict=True)
        ys = [order.index(named[point_of(row)]) + shift for row in rows]
        marks(axes, style(name), xs, ys, along="x", lows=lows, highs=highs, label=name)
    axes.set(ylim=(len(order) - 0.5, -0.5), yticks=range(len(order)), yticklabels=order)
    named_beside(axes)
    return finished(
        axes,
        f"rows-{next(iter(points)).short_name(varying(points))}",
        speedup.filled(speedup.axis.title),
        facts(next(iter(points)), every, varying(points)),
        [f"bar: 99 % interval over {process_count(measured(every))}", *origins(every)],
    )


def labels(points: Mapping[Point, object]) -> dict[Point, str]:
    """Return a label for each point: its model if all have another one, else in what it differs."""
    models = {point: model_of(point) or "" for point in points}
    if all(models.values()) and len({*models.values()}) == len(models):
        return models
    return names([*points], LONGEST_NAME)
