"""The picture of points that no line joins: a row for each, with the speed-ups and their intervals."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.analyse.axes import AXES, groups
from bench.analyse.rows import grouped, point_of
from bench.plan.case import Point
from bench.plan.grid import model_of
from bench.show.figures import layout, page
from bench.show.figures.line_data import Quantity, ends_of_speedups, speedup
from bench.show.palette import style
from bench.show.rows import Row, is_measured, measured, origins, plain, process_count
from bench.show.text import LONGEST_NAME, names, varying
from bench.store.table import baseline_of

BETWEEN, MARK = 0.14, 0.13
"""Lengths in inches: the room around a row, and the height of a mark in it."""

MOST = 40
"""Of more points there is no picture: it would be longer than a screen."""


def figures(table: pd.DataFrame) -> Iterator[page.Drawing]:
    """Yield the picture of all points of a table if two or more are in no series, and if something has a speed-up."""
    rows, baseline = plain(table), baseline_of(table)
    points = grouped(rows, point_of)
    joined = {point_of(row) for axis in AXES for group in groups(rows, axis) for row in group}
    if baseline and len(points) - len(joined) > 1 and len(points) <= MOST and any(_drawn(rows, baseline)):
        point = next(iter(points))
        yield f"rows-{point.short_name(varying(points))}", figure(points, baseline)


def _drawn(rows: Sequence[Row], baseline: str) -> list[Row]:
    """Return the rows that have a mark."""
    return [row for row in measured(rows) if row["speedup"] is not None and row["implementation"] != baseline]


@page.styled()
def figure(points: Mapping[Point, Sequence[Row]], baseline: str) -> Figure:
    """Return the picture of points with their rows, the one on top at which the first implementation is fastest."""
    quantity = speedup(baseline)
    rows = [row for own in points.values() for row in _drawn(own, baseline)]
    order = [*dict.fromkeys(row["implementation"] for row in rows)]

    def gain(point: Point) -> float:
        own = {row["implementation"]: float(row["speedup"]) for row in _drawn(points[point], baseline)}
        return own.get(order[0], 0.0)

    points = {point: points[point] for point in sorted(points, key=gain, reverse=True)}
    height = len(points) * (BETWEEN + MARK * len(order))
    every = [row for own in points.values() for row in own]
    facts = page.facts(next(iter(points)), every, varying(points))
    band = f"bar: 99 % interval over {process_count(row for row in every if is_measured(row))}"
    sheet = page.new_figure(quantity.filled(quantity.axis.title), facts, [band, *origins(every)], [height])
    (axes,) = sheet.axes
    _scale(axes, rows, quantity, labels(points))
    axes.axvline(1, color=page.GREY, linewidth=1.2, zorder=1)
    step = MARK / (BETWEEN + MARK * len(order))
    for place, own in enumerate(points.values()):
        for row in _drawn(own, baseline):
            shift = (order.index(row["implementation"]) - (len(order) - 1) / 2) * step
            _mark(axes, row, place + shift)
    _draw_names(axes, order, height)
    return sheet


def labels(points: Mapping[Point, object]) -> list[str]:
    """Return a label for each point: its model if all have another one, else in what it differs."""
    models = [model_of(point) for point in points]
    if all(models) and len({*models}) == len(models):
        return models
    named = names([*points], LONGEST_NAME)
    return [named[point] for point in points]


def _scale(axes: Axes, rows: Sequence[Row], quantity: Quantity, of_places: Sequence[str]) -> None:
    ends = ends_of_speedups(rows)
    ticks = layout.ratios(*ends, gap=0.09)
    axes.set(xscale="log", xlim=ends, xlabel=quantity.filled(quantity.axis.label))
    axes.set_xticks(ticks, labels=[*map(quantity.tick_label, ticks)])
    axes.minorticks_off()
    axes.set(ylim=(len(of_places) - 0.5, -0.5))
    axes.set_yticks(range(len(of_places)), labels=of_places)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def _mark(axes: Axes, row: Row, y: float) -> None:
    own = style(row["implementation"])
    if row["speedup_low"] is not None:
        axes.plot([row["speedup_low"], row["speedup_high"]], [y, y], color=own.colour, linewidth=1.4, zorder=2)
    axes.plot(
        row["speedup"], y, linestyle="none", gid=f"mark {row['implementation']}", zorder=3, **page.marker(own, 6, 1.0)
    )


def _draw_names(axes: Axes, order: Sequence[str], height: float) -> None:
    """Write the implementations beside the axes, from the top."""
    for number, name in enumerate(order):
        own = style(name)
        sample = {"color": own.colour, "linewidth": 1.4, **page.marker(own, 6, 1.0)}
        page.write_beside(axes, 1 - page.LABEL_GAP * (number + 0.5) / height, name, sample)
