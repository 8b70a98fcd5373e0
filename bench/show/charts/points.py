"""The picture of points that no line joins: a row for each, with the speed-ups and their intervals."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from bench.analyse.axes import AXES, groups
from bench.analyse.rows import grouped, point_of
from bench.plan.case import Point
from bench.plan.grid import model_of
from bench.show.charts.quantity import ROOM_IN, ROW_IN, quantity
from bench.show.picture import Panel, Picture, Scale
from bench.show.rows import Row, facts, measured, origins, plain, process_count
from bench.show.text import LONGEST_NAME, names, varying
from bench.store.table import baseline_of

MOST = 40
"""Of more points there is no picture: it would be longer than a screen."""

TICK_GAP = 0.09
"""The least distance of two ticks as a share of the axis, so that labels don't touch."""


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
    rows = [{**row, "label": named[point_of(row)], **speedup.drawn(row)} for row in measured(every)]
    rows = [row for row in rows if row["speedup"] is not None]
    order = [*dict.fromkeys(row["implementation"] for row in rows)]
    gains = {row["label"]: row["speedup"] for row in rows if row["implementation"] == order[0]}
    y = Scale.places("", sorted(named.values(), key=lambda label: -gains.get(label, 0.0)))
    panel = Panel(x=speedup.scale(rows, TICK_GAP), y=y, marks=speedup.in_rows(), rows=rows,
        height=len(points) * (ROOM_IN + ROW_IN * len(order)))  # fmt: skip
    return Picture(
        name=f"rows-{next(iter(points)).short_name(varying(points))}",
        heading=speedup.filled(speedup.axis.title),
        facts=facts(next(iter(points)), every, varying(points)),
        notes=[f"bar: 99 % interval over {process_count(measured(every))}", *origins(every)],
        stacks=[[panel]],
    )


def labels(points: Mapping[Point, object]) -> dict[Point, str]:
    """Return a label for each point: its model if all have another one, else in what it differs."""
    models = {point: model_of(point) or "" for point in points}
    if all(models.values()) and len({*models.values()}) == len(models):
        return models
    return names([*points], LONGEST_NAME)
