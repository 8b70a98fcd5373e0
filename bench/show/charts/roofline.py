"""The roofline: each case's rate against its operations per byte, under the device's ceilings."""

import functools
from collections.abc import Iterator, Sequence
from operator import itemgetter

import pandas as pd

from bench.analyse.rows import Row, grouped, is_measured, plain, point_of
from bench.plan.case import COLUMNS
from bench.plan.work import Roof
from bench.show.charts.sheet import Picture, finished, legend, logarithmic, marks, sheet
from bench.show.palette import COLOURS, style
from bench.show.rows import against_data_sheets, devices, origins
from bench.show.text import parts
from bench.store import units
from bench.store.roofline import roof_of, work_of

FIXED = ("layer", *(name for name, column in COLUMNS.items() if column.group == "execution"))
"""The columns that all points of a picture share; only their shapes differ."""

ROOM = 2.0
"""The axes reach beyond the outermost cases by this factor; the ridge of the roof may lie outside."""


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield the picture of each setting with known ceilings in a table of results.

    A setting is a layer, device, dtype, mode and so on.
    """
    rated = [row for row in plain(table) if is_measured(row) and row["flops_per_s"] is not None and roof_of(row)]
    return map(picture, grouped(rated, itemgetter(*FIXED)).values())


def picture(rows: Sequence[Row]) -> Picture:
    """Return the picture of the rows of one setting; each has a rate and ceilings."""
    placed = [(work.intensity, row) for row in rows if (work := work_of(point_of(row), row))]
    roof = functools.reduce(Roof.raised, [each for row in rows if (each := roof_of(row))])
    intensities = [at for at, _ in placed]
    left, right = min(intensities) / ROOM, max(intensities) * ROOM
    corners = (left, *([roof.ridge] if left < roof.ridge < right else []), right)
    axes = sheet()
    rate = functools.partial(units.rate, unit="FLOP/s", trim=True)
    logarithmic(axes, "x", (left, right), "{:g}".format)
    logarithmic(axes, "y", [*(row["flops_per_s"] for row in rows), *map(roof.reached, corners)], rate)
    axes.set(xlabel="operations per byte", ylabel="operations per second")
    axes.plot(corners, [*map(roof.reached, corners)], color=COLOURS["ink"], linewidth=1.5)
    for name, own in grouped(placed, lambda each: str(each[1]["implementation"])).items():
        marks(axes, style(name), [at for at, _ in own], [row["flops_per_s"] for _, row in own], label=name)
    legend(axes)
    return finished(
        axes,
        f"roofline-{point_of(rows[0]).short_name(set(COLUMNS) - set(FIXED))}",
        "Rate against operations per byte",
        [*parts(point_of(rows[0]), FIXED), *devices(rows)],
        [
            f"line: the highest rates on this device, matrix products {units.rate(roof.flops_per_s, 'FLOP/s')}",
            f"copy {units.rate(roof.bytes_per_s, 'B/s')}",
            "bytes: input, weights and output, each moved once",
            *against_data_sheets(rows),
            *origins(rows),
        ],
    )
