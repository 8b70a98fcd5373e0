"""Pictures with a mark for each case at two of its values: the roofline and the frontier.

The roofline has the rate against operations per byte, under the ceilings of the device; the frontier has the error of
each implementation and precision against its latency, at one shape.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from bench.analyse.axes import gathered
from bench.analyse.rows import Row, by, grouped, point_of
from bench.plan.case import COLUMNS
from bench.plan.work import Roof
from bench.show.figures import layout
from bench.show.picture import Marks, Panel, Picture, Scale, Shape
from bench.show.rows import against_data_sheets, devices, facts, is_measured, origins, plain
from bench.show.text import parts
from bench.store import units
from bench.store.roofline import roof_of, work_of

FIXED = ("layer", *(name for name, column in COLUMNS.items() if column.option == "execution"))
"""The columns that all points of a roofline share; their shapes differ."""

ROOM = 2.0
"""The axes of a roofline reach beyond the outermost cases by this factor; the ridge of the roof may lie outside."""

VARIED = frozenset({"dtype"})
"""What differs between the marks of a frontier."""

FEWEST = 2
"""The number of precisions from which there is something to choose."""

NAMES_ROOM = 0.14
"""The room above and below the marks of a frontier, as a share of the axis, for the names of the precisions."""

HEIGHT = 4.0
"""The height of both in inches."""

SIZE, RING, SMALL_SIZE = 7.0, 15.0, 7.5
"""The sizes of a mark, of a ring around it, and of words, in points."""


def rooflines(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield the picture of each setting of a table of results whose ceilings are known.

    A setting is a layer, device, dtype, mode and so on.
    """
    rated = [row for row in plain(table) if is_measured(row) and row["flops_per_s"] is not None and roof_of(row)]
    return map(roofline, grouped(rated, itemgetter(*FIXED)).values())


def roofline(rows: Sequence[Row]) -> Picture:
    """Return the picture of the rows of one setting; each has a rate and ceilings."""
    marks = [{**row, "intensity": work.intensity} for row in rows if (work := work_of(point_of(row), row))]
    roof = functools.reduce(Roof.raised, [each for row in rows if (each := roof_of(row))])
    intensities = [row["intensity"] for row in marks]
    left, right = min(intensities) / ROOM, max(intensities) * ROOM
    ends = layout.padded(*_ends([*(row["flops_per_s"] for row in marks), roof.reached(left), roof.reached(right)]))
    lines = [Marks(shape=Shape.LINE, x="x", y="y", rows=_corners(roof, left, right), width=1.8, has_points=False)]
    panel = Panel(
        x=Scale.log("operations per byte", (left, right), layout.decimal(left, right), "{:g}".format),
        y=Scale.log("operations per second", ends, layout.decimal(*ends), functools.partial(_rate, trim=True)),
        marks=[*lines, *_ceilings(roof, left, right), Marks(shape=Shape.POINT, x="intensity", y="flops_per_s",
            by="implementation", size=SIZE, opacity=0.85, beside=True)],
        height=HEIGHT,
        rows=marks,
    )  # fmt: skip
    return Picture(
        name=f"roofline-{point_of(rows[0]).short_name(set(COLUMNS) - set(FIXED))}",
        heading="Rate against operations per byte, and the device's ceilings",
        facts=[*parts(point_of(rows[0]), FIXED), *devices(rows)],
        notes=[
            "a mark is a case at its latency; the line is the most that this device was seen to reach",
            "bytes: input, weights and output, each moved once",
            *against_data_sheets(rows),
            *origins(rows),
        ],
        stacks=[[panel]],
    )


def _rate(value: float, *, trim: bool = False) -> str:
    return units.rate(value, "FLOP/s", trim=trim)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _corners(roof: Roof, left: float, right: float) -> list[dict[str, float]]:
    at = (left, *([roof.ridge] if left < roof.ridge < right else []), right)
    return [{"x": each, "y": roof.reached(each)} for each in at]


def _ceilings(roof: Roof, left: float, right: float) -> Iterator[Marks]:
    """Yield the two ceilings in words: at the right the flat one, at the left the slope, unless it lies outside."""
    flat, slope = f"matrix products {_rate(roof.flops_per_s)}", f"copy {units.rate(roof.bytes_per_s, 'B/s')}"
    if roof.ridge <= left:
        beyond = float(f"{roof.ridge:.2g}")
        flat, slope = f"{flat}; {slope} is the ceiling below {beyond:g} operations per byte", ""
    for at, words, align, shift in ((right, flat, "right", (0, 7)), (left, slope, "left", (12, 0))):
        rows = [{"x": at, "y": roof.reached(at), "words": words}]
        yield Marks(shape=Shape.TEXT, x="x", y="y", text="words", rows=rows, colour="quiet", size=SMALL_SIZE,
            align=align, shift=shift)  # fmt: skip


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
    across = layout.limits(
        *(
            [row[name] for row in rows if row[name] is not None]
            for name in ("latency_s", "latency_low_s", "latency_high_s")
        )
    )
    up = layout.padded(*_ends([row["error"] for row in rows]), NAMES_ROOM)
    powers = [10.0**power for power in range(math.ceil(math.log10(up[0])), math.floor(math.log10(up[1])) + 1)]
    panel = Panel(
        x=Scale.log("time per call", across, layout.decimal(*across), functools.partial(units.seconds, trim=True)),
        y=Scale.log(
            "error, relative to the largest value", up, powers, lambda tick: f"{tick:.0e}".replace("e-0", "e-")
        ),
        marks=[*_of_frontier(rows, across[1])],
        height=HEIGHT,
        rows=rows,
    )
    return Picture(
        name=f"frontier-{point_of(rows[0]).short_name(VARIED)}",
        heading="Error against latency, by precision",
        facts=facts(point_of(rows[0]), rows, VARIED),
        notes=["in a ring: nothing is better in both", "bars are 95 % intervals over processes", *origins(rows)],
        stacks=[[panel]],
    )


def _of_frontier(rows: Sequence[Row], right: float) -> Iterator[Marks]:
    own: dict[str, Any] = {"y": "error", "by": "implementation"}
    yield Marks(shape=Shape.POINT, x="latency_s", y="error", rows=best(rows), colour="quiet", size=RING, is_hollow=True)
    yield Marks(shape=Shape.RULE, x="latency_low_s", x2="latency_high_s", opacity=0.5, **own)
    yield Marks(shape=Shape.POINT, x="latency_s", size=SIZE, beside=True, **own)
    precisions = [{"dtype": dtype, "error": max(row["error"] for row in of)} for dtype, of in by(rows, "dtype").items()]
    yield Marks(shape=Shape.TEXT, x=right, y="error", text="dtype", rows=precisions, colour="quiet", size=SMALL_SIZE,
        align="right", shift=(-3, 12))  # fmt: skip
