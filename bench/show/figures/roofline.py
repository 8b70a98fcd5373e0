"""The roofline picture: the rate of each case against its operations per byte, under the ceilings of the device."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.analyse.scaling.series import Row, by, point_of
from bench.plan.case import COLUMNS, Point
from bench.show.figures import log_axis, page
from bench.show.palette import style
from bench.show.point_text import parts
from bench.show.rows import devices, is_measured, origins, plain
from bench.store import units
from bench.store.roofline import Roof, roof_of, work_of

FIXED = ("layer", *(name for name, column in COLUMNS.items() if column.option == "execution"))
"""The columns that all points of a picture share; their shapes differ."""

LEFT = 1.25
"""The room for the numbers beside the axes, in inches."""

ROOM = 2.0
"""The axes reach beyond the outermost case, or the ridge of the roof, by this factor."""

MARK_SIZE, MARK_ALPHA, ROOF_WIDTH = 5.0, 0.85, 1.4


@dataclass(frozen=True)
class Rates:
    """The data of a picture: the rows of a setting, their operations per byte, and the ceilings over them."""

    point: Point
    rows: tuple[Row, ...]
    intensities: tuple[float, ...]
    roof: Roof

    @property
    def name(self) -> str:
        """The picture in one word: a file name that stays the same whatever else was measured."""
        return f"roofline-{self.point.short_name(set(COLUMNS) - set(FIXED))}"


def figures(table: pd.DataFrame) -> Iterator[page.Drawing]:
    """Yield a picture of each setting of a table of results whose ceilings are known."""
    return ((rates.name, figure(rates)) for rates in settings(table))


def settings(table: pd.DataFrame) -> Iterator[Rates]:
    """Yield the rows with a rate and with ceilings, by layer, device, dtype, mode and so on."""
    settings: dict[tuple[object, ...], list[Row]] = {}
    for row in plain(table):
        if is_measured(row) and row["flops_per_s"] is not None and roof_of(row) is not None:
            settings.setdefault(tuple(row[name] for name in FIXED), []).append(row)
    for rows in settings.values():
        works = [work for row in rows if (work := work_of(point_of(row), row))]
        highest = functools.reduce(Roof.raised, [roof for row in rows if (roof := roof_of(row))])
        yield Rates(point_of(rows[0]), tuple(rows), tuple(work.intensity for work in works), highest)


@page.styled()
def figure(rates: Rates) -> Figure:
    """Return the picture as a figure."""
    names = by(rates.rows, "implementation")
    made = page.new_figure(
        "Rate against operations per byte, and the device's ceilings",
        [*parts(rates.point, FIXED), *devices(rates.rows)],
        list(_notes(rates)),
        [page.names_height(names)],
        left=LEFT,
        right=page.names_width(names),
    )
    axes = made.axes[0]
    _scale(axes, rates)
    _roof(axes, rates.roof)
    at = {id(row): intensity for row, intensity in zip(rates.rows, rates.intensities, strict=True)}
    options: dict[str, Any] = {"linestyle": "none", "alpha": MARK_ALPHA, "zorder": 3}
    for number, (name, rows) in enumerate(names.items()):
        marks = {**options, **page.marker(style(name), MARK_SIZE, 1.0)}
        xs, ys = [at[id(row)] for row in rows], [row["flops_per_s"] for row in rows]
        axes.plot(xs, ys, gid=f"rate {name}", **marks)
        page.write_name(axes, number, name, marks)
    return made


def _notes(rates: Rates) -> Iterator[str]:
    yield "a mark is a case at its latency; the line is the most that this device was seen to reach"
    yield "bytes: input, weights and output, each moved once"
    yield from origins(rates.rows)


def _scale(axes: Axes, rates: Rates) -> None:
    intensities = [*rates.intensities, rates.roof.ridge]
    left, right = min(intensities) / ROOM, max(intensities) * ROOM
    values = [row["flops_per_s"] for row in rates.rows]
    ceilings = [rates.roof.reached(left), rates.roof.reached(right)]
    ends = log_axis.padded(min(*values, *ceilings), max(*values, *ceilings))
    across, up = log_axis.decimal(left, right), log_axis.decimal(*ends)
    page.log_scale(axes.xaxis, (left, right), across, [f"{tick:g}" for tick in across])
    page.log_scale(axes.yaxis, ends, up, [units.rate(tick, "FLOP/s", trim=True) for tick in up])
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("operations per second")


def _roof(axes: Axes, roof: Roof) -> None:
    low, high = axes.get_xlim()
    xs = np.array([low, roof.ridge, high])
    axes.plot(xs, [roof.reached(x) for x in xs], color=page.INK, linewidth=ROOF_WIDTH, zorder=2.5, gid="roof")
    flat, slope = units.rate(roof.flops_per_s, "FLOP/s"), units.rate(roof.bytes_per_s, "B/s")
    text_options: dict[str, Any] = {
        "color": page.GREY,
        "size": page.SMALL_SIZE,
        "textcoords": "offset points",
        "va": "bottom",
    }
    axes.annotate(f"matrix products {flat}", (high, roof.flops_per_s), xytext=(0, 4), ha="right", **text_options)
    axes.annotate(f"copy {slope}", (low, roof.reached(low)), xytext=(10, 0), **text_options)
