"""Pictures with a mark for each case at two of its values: the roofline and the frontier.

The roofline has the rate against operations per byte, under the ceilings of the device; the frontier has the error of
each implementation and precision against its latency, at one shape.
"""

import functools
from collections.abc import Iterator, Sequence
from operator import itemgetter

import pandas as pd

from bench.analyse.axes import gathered
from bench.analyse.rows import Row, by, grouped, point_of
from bench.plan.case import COLUMNS
from bench.plan.work import Roof
from bench.show.charts.sheet import SMALL_SIZE, Picture, finished, logarithmic, marks, named_beside, sheet
from bench.show.palette import light, style
from bench.show.rows import against_data_sheets, devices, facts, is_measured, origins, plain
from bench.show.text import parts
from bench.store import units
from bench.store.roofline import roof_of, work_of

FIXED = ("layer", *(name for name, column in COLUMNS.items() if column.group == "execution"))
"""The columns that all points of a roofline share; their shapes differ."""

ROOM = 2.0
"""The axes of a roofline reach beyond the outermost cases by this factor; the ridge of the roof may lie outside."""

VARIED = frozenset({"dtype"})
"""What differs between the marks of a frontier."""

FEWEST = 2
"""The number of precisions from which there is something to choose."""

HEIGHT = 4.0
"""The height of both in inches."""


def rooflines(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield the picture of each setting of a table of results whose ceilings are known.

    A setting is a layer, device, dtype, mode and so on.
    """
    rated = [row for row in plain(table) if is_measured(row) and row["flops_per_s"] is not None and roof_of(row)]
    return map(roofline, grouped(rated, itemgetter(*FIXED)).values())


def roofline(rows: Sequence[Row]) -> Picture:
    """Return the picture of the rows of one setting; each has a rate and ceilings."""
    placed = [(work.intensity, row) for row in rows if (work := work_of(point_of(row), row))]
    roof = functools.reduce(Roof.raised, [each for row in rows if (each := roof_of(row))])
    intensities = [at for at, _ in placed]
    left, right = min(intensities) / ROOM, max(intensities) * ROOM
    corners = (left, *([roof.ridge] if left < roof.ridge < right else []), right)
    ((axes,),) = sheet([HEIGHT])
    rate = functools.partial(units.rate, unit="FLOP/s", trim=True)
    logarithmic(axes, "x", (left, right), "{:g}".format)
    logarithmic(axes, "y", [*(row["flops_per_s"] for row in rows), *map(roof.reached, corners)], rate)
    axes.set(xlabel="operations per byte", ylabel="operations per second")
    axes.plot(corners, [*map(roof.reached, corners)], color=light("ink"), linewidth=1.8)
    for name, own in grouped(placed, lambda each: str(each[1]["implementation"])).items():
        marks(axes, style(name), [at for at, _ in own], [row["flops_per_s"] for _, row in own], label=name)
    named_beside(axes)
    return finished(
        axes,
        f"roofline-{point_of(rows[0]).short_name(set(COLUMNS) - set(FIXED))}",
        "Rate against operations per byte, and the device's ceilings",
        [*parts(point_of(rows[0]), FIXED), *devices(rows)],
        [
            "a mark is a case at its latency; the line is the most that this device was seen to reach: matrix products "
            f"{units.rate(roof.flops_per_s, 'FLOP/s')}, copy {units.rate(roof.bytes_per_s, 'B/s')}",
            "bytes: input, weights and output, each moved once",
            *against_data_sheets(rows),
            *origins(rows),
        ],
    )


def frontiers(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield the picture of each shape of a table of results that was measured in several precisions."""
    judged = [row for row in plain(table) if is_measured(row) and row["error"]]
    return (frontier(rows) for rows in gathered(judged, [], VARIED) if len(by(rows, "dtype")) >= FEWEST)


def best(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that no other one beats in both time and error, the fastest first."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: (row["latency_s"], row["error"])):
        if not kept or row["error"] < kept[-1]["error"]:
            kept.append(row)
    return kept


def frontier(rows: Sequence[Row]) -> Picture:
    """Return the picture of errors against latencies of one shape: rings around the best, and each precision."""
    ((axes,),) = sheet([HEIGHT])
    names = ("latency_s", "error", "latency_low_s", "latency_high_s")
    times, errors, lows, highs = ([row[name] for row in rows] for name in names)
    logarithmic(axes, "x", times, functools.partial(units.seconds, trim=True), lows=lows, highs=highs)
    logarithmic(axes, "y", errors, "{:.0e}".format)
    axes.set(xlabel="time per call", ylabel="error, relative to the largest value")
    rings = best(rows)
    axes.plot([row["latency_s"] for row in rings], [row["error"] for row in rings], "o", markersize=15,
        markerfacecolor="none", color=light("quiet"))  # fmt: skip
    for name, own in by(rows, "implementation").items():
        xs, ys, lows, highs = ([row[column] for row in own] for column in names)
        marks(axes, style(name), xs, ys, along="x", lows=lows, highs=highs, label=name)
    for dtype, own in by(rows, "dtype").items():
        axes.annotate(dtype, (1, max(row["error"] for row in own)), xycoords=("axes fraction", "data"), ha="right",
            size=SMALL_SIZE, color=light("quiet"), xytext=(-3, 12), textcoords="offset points")  # fmt: skip
    named_beside(axes)
    return finished(
        axes,
        f"frontier-{point_of(rows[0]).short_name(VARIED)}",
        "Error against latency, by precision",
        facts(point_of(rows[0]), rows, VARIED),
        ["in a ring: nothing is better in both", "bars are 95 % intervals over processes", *origins(rows)],
    )
