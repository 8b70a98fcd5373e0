"""The picture of points outside series: a row for each, with the speed-ups and their intervals."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from bench.analyse.axes import AXES, groups
from bench.analyse.rows import Row, by, grouped, plain, point_of
from bench.plan.case import Point
from bench.plan.grid import model_of
from bench.show.charts.lines import interval, set_up, value
from bench.show.charts.sheet import Picture, finished, legend, marks, sheet
from bench.show.palette import style
from bench.show.rows import facts, origins
from bench.show.text import LONGEST_NAME, names, varying
from bench.store.metrics import COLUMNS as METRICS
from bench.store.table import baseline_of

SPEEDUP = METRICS["speedup"]

MOST = 40
"""With more points there is no picture, because it would be longer than a screen."""

ROW, ROOM, WIDTH, SLOT = 0.12, 0.12, 3.0, 0.8
"""The height of an implementation at a point, the margin around it and the width of the axes, in inches; the share of a
point's height for its marks."""


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield the picture of all points of a table if two or more are outside series and any row has a speed-up."""
    rows, baseline = plain(table), baseline_of(table)
    points = grouped(rows, point_of)
    joined = {point_of(row) for axis in AXES for group in groups(rows, axis) for row in group}
    if baseline and len(points) - len(joined) > 1 and len(points) <= MOST and any(value(row, SPEEDUP) for row in rows):
        yield picture(points, baseline)


def picture(points: Mapping[Point, Sequence[Row]], baseline: str) -> Picture:
    """Return the picture of points with their rows, by the first implementation's speed-up, the largest on top."""
    named, every = labels(points), [row for own in points.values() for row in own]
    drawn = [row for row in every if value(row, SPEEDUP)]
    series = by(drawn, "implementation")
    gains = {named[point_of(row)]: row["speedup"] for row in next(iter(series.values()))}
    order = sorted(named.values(), key=lambda label: -gains.get(label, 0.0))
    axes = sheet(len(points) * (ROOM + ROW * len(series)), WIDTH)
    set_up(axes, "x", SPEEDUP, drawn, baseline)
    for number, (name, rows) in enumerate(series.items()):
        shift = SLOT * ((number + 0.5) / len(series) - 0.5)
        xs, lows, highs = zip(*filter(None, (value(row, SPEEDUP) for row in rows)), strict=True)
        ys = [order.index(named[point_of(row)]) + shift for row in rows]
        marks(axes, style(name), xs, ys, lows=lows, highs=highs, label=name)
    axes.set(ylim=(len(order) - 0.5, -0.5), yticks=range(len(order)), yticklabels=order)
    legend(axes)
    return finished(
        axes,
        f"rows-{next(iter(points)).short_name(varying(points))}",
        f"Speed-up over {baseline}",
        facts(next(iter(points)), every, varying(points)),
        [*interval(SPEEDUP, drawn, "bar"), *origins(every)],
    )


def labels(points: Mapping[Point, object]) -> dict[Point, str]:
    """Return a label for each point: its model if all models differ, else its differences."""
    models = {point: model_of(point) or "" for point in points}
    if all(models.values()) and len({*models.values()}) == len(models):
        return models
    return names([*points], LONGEST_NAME)
