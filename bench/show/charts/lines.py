"""Pictures of one metric along one axis: a line for each implementation; the legend says what has no time."""

from collections.abc import Iterator, Sequence
from operator import itemgetter

import pandas as pd
from matplotlib.axes import Axes

from bench.analyse.axes import AXES, Axis, groups, moving, places
from bench.analyse.rows import by, point_of
from bench.show.charts.quantity import Quantity, quantities
from bench.show.charts.sheet import Picture, at_places, finished, look, named_beside, sheet
from bench.show.palette import style
from bench.show.rows import Row, facts, is_measured, origins, plain, process_count
from bench.store import units
from bench.store.table import baseline_of
from impls.catalogue import Style

HEIGHT = 3.5
"""The height of the axes, in inches."""


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield every picture that the table has values for: each shows a series along its axis."""
    rows, every = plain(table), quantities(baseline_of(table))
    for axis in AXES:
        for quantity in (each for each in every if axis.name in each.axis.over):
            yield from filter(None, (picture(group, quantity, axis) for group in groups(rows, axis)))


def picture(group: Sequence[Row], quantity: Quantity, axis: Axis) -> Picture | None:
    """Return the picture of a series, None if nothing of this quantity was measured."""
    drawn = [row for row in group if is_measured(row) and quantity.drawn(row)]
    if not drawn:
        return None
    point = point_of(group[0])
    varying = moving(axis, point)
    ((axes,),) = sheet([HEIGHT])
    set_up_along(axes, axis, group, varying)
    quantity.set_up(axes, drawn)
    for name, rows in by(group, "implementation").items():
        _draw(axes, name, rows, quantity, axis, style(name))
    named_beside(axes)
    return finished(
        axes,
        f"{quantity.axis.name}-{axis.name}-{point.short_name(varying)}",
        f"{quantity.filled(quantity.axis.title)} against {axis.name}",
        facts(point, group, varying),
        [*interval(quantity, drawn), *origins(group)],
    )


def set_up_along(axes: Axes, axis: Axis, rows: Sequence[Row], varying: set[str]) -> None:
    """Set the horizontal axis of a series, whose places are its ticks."""
    at = places(rows, axis)
    if axis.is_share:
        axes.set(xlim=(0, 1), xticks=at, xticklabels=[*map(units.percent, at)])
    else:
        at_places(axes, at)
    axes.set_xlabel(f"{axis.title}{'  (token length = channels)' if 'token_len' in varying else ''}")


def _draw(axes: Axes, name: str, rows: Sequence[Row], quantity: Quantity, axis: Axis, of: Style) -> None:
    """Draw a line with its band; where it has no time it is broken, and its name says why."""
    ordered = sorted(rows, key=itemgetter(axis.column))
    xs = [row[axis.column] for row in ordered]
    values = [(quantity.drawn(row) if is_measured(row) else None) or (float("nan"),) * 3 for row in ordered]
    middles, lows, highs = zip(*values, strict=True)
    failed = by([row for row in ordered if row["status"] != "ok"], "status")
    ends = [f"{status} at {', '.join(str(row[axis.column]) for row in own)}" for status, own in failed.items()]
    if ends or any(value == value for value in middles):
        axes.plot(xs, middles, label="\n".join([name, *ends]), **look(of))
        axes.fill_between(xs, lows, highs, facecolor=(of.colour, 0.15), edgecolor=(of.colour, 0.3), linewidth=0.6)


def interval(quantity: Quantity, rows: Sequence[Row], what: str = "band") -> Iterator[str]:
    """Yield what the bands of measured rows are."""
    if quantity.axis.low:
        percent, processes = 99 if quantity.axis.relative else 95, process_count(rows)
        has_band = any(row[quantity.axis.low] is not None for row in rows)
        yield f"{what}: {percent} % interval over {processes}" if has_band else f"{processes}, so no interval"
