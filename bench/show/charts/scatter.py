"""Pictures with a mark for each case at two of its values: the roofline and the frontier.

The roofline has the rate against operations per byte, under the ceilings of the device; the frontier has the error of
each implementation and precision against its latency, at one shape.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import altair as alt
import pandas as pd

from bench.analyse.axes import gathered
from bench.analyse.rows import Row, by, grouped, point_of
from bench.plan.case import COLUMNS
from bench.plan.work import Roof
from bench.show.charts.base import SIZE, SMALL_PX, THIN, Sheet, Spec, chart, inline, log, looks, spec, ticks
from bench.show.figures import layout
from bench.show.figures.page import facts
from bench.show.rows import against_data_sheets, devices, is_measured, origins, plain
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

RING = 5 * SIZE
"""The area of a ring around a mark."""

ROOFLINE_PX, FRONTIER_PX = 400, 380
"""The heights of both."""


def rooflines(table: pd.DataFrame) -> Iterator[tuple[str, Sheet]]:
    """Yield the name and the picture of each setting of a table of results whose ceilings are known.

    A setting is a layer, device, dtype, mode and so on. The name stays the same whatever else was measured.
    """
    rated = [row for row in plain(table) if is_measured(row) and row["flops_per_s"] is not None and roof_of(row)]
    for rows in grouped(rated, itemgetter(*FIXED)).values():
        yield f"roofline-{point_of(rows[0]).short_name(set(COLUMNS) - set(FIXED))}", roofline_sheet(rows)


def roofline_sheet(rows: Sequence[Row]) -> Sheet:
    """Return the picture of the rows of one setting as a file; each has a rate and ceilings."""
    names = list(by(rows, "implementation"))
    marks = [
        {"implementation": row["implementation"], "intensity": work.intensity, "rate": row["flops_per_s"]}
        for row in rows
        if (work := work_of(point_of(row), row))
    ]
    highest = functools.reduce(Roof.raised, [roof for row in rows if (roof := roof_of(row))])
    return Sheet(
        heading="Rate against operations per byte, and the device's ceilings",
        facts=[*parts(point_of(rows[0]), FIXED), *devices(rows)],
        notes=[
            "a mark is a case at its latency; the line is the most that this device was seen to reach",
            "bytes: input, weights and output, each moved once",
            *against_data_sheets(rows),
            *origins(rows),
        ],
        spec=roofline(marks, highest, names),
        rows=marks,
        names=names,
    )


def roofline(rows: Sequence[Row], roof: Roof, names: Sequence[str]) -> Spec:
    """Return the chart of the rates: marks of cases, the roof, and its two ceilings in words."""
    intensities = [row["intensity"] for row in rows]
    left, right = min(intensities) / ROOM, max(intensities) * ROOM
    values = [*(row["rate"] for row in rows), roof.reached(left), roof.reached(right)]
    ends = layout.padded(min(values), max(values))
    across, up = layout.decimal(left, right), layout.decimal(*ends)
    x = alt.X("intensity:Q", title="operations per byte", scale=log((left, right)),
        axis=ticks(across, (f"{tick:g}" for tick in across)))  # fmt: skip
    y = alt.Y("rate:Q", title="operations per second", scale=log(ends),
        axis=ticks(up, (units.rate(tick, "FLOP/s", trim=True) for tick in up)))  # fmt: skip
    places = (left, *([roof.ridge] if left < roof.ridge < right else []), right)
    corners = [{"intensity": at, "rate": roof.reached(at)} for at in places]
    line = inline(corners).mark_line(color="var(--ink)", strokeWidth=1.8).encode(x=x, y=y)
    flat, slope = (
        f"matrix products {units.rate(roof.flops_per_s, 'FLOP/s')}",
        f"copy {units.rate(roof.bytes_per_s, 'B/s')}",
    )
    if roof.ridge <= left:
        flat, slope = f"{flat}; {slope} is the ceiling below {float(f'{roof.ridge:.2g}'):g} operations per byte", ""
    style: dict[str, Any] = {"color": "var(--quiet)", "fontSize": SMALL_PX}
    words = [
        inline(corners[-1:]).mark_text(align="right", dy=-7, **style).encode(x=x, y=y, text=alt.value(flat)),
        inline(corners[:1]).mark_text(align="left", dx=12, **style).encode(x=x, y=y, text=alt.value(slope)),
    ]
    marks = chart().mark_point(size=SIZE, opacity=0.85).encode(x=x, y=y, **looks(names))
    description = "Operations per second against operations per byte, under the roof of the device"
    return spec(description, line, marks, *words, height=ROOFLINE_PX)


def frontiers(table: pd.DataFrame) -> Iterator[tuple[str, Sheet]]:
    """Yield the name and the picture of each shape of a table of results that was measured in several precisions.

    The name stays the same whatever else was measured.
    """
    judged = [row for row in plain(table) if is_measured(row) and row["error"]]
    for rows in gathered(judged, [], VARIED):
        if len(by(rows, "dtype")) >= FEWEST:
            yield f"frontier-{point_of(rows[0]).short_name(VARIED)}", frontier_sheet(rows)


def best(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that no other one beats in both time and error, the fastest first."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: (row["latency_s"], row["error"])):
        if not kept or row["error"] < kept[-1]["error"]:
            kept.append(row)
    return kept


def frontier_sheet(rows: Sequence[Row]) -> Sheet:
    """Return the picture of the rows of one shape as a file; each has a time and an error."""
    names, unbeaten = list(by(rows, "implementation")), best(rows)
    columns = ("implementation", "dtype", "error", "latency_s", "latency_low_s", "latency_high_s")
    notes = ["in a ring: nothing is better in both", "bars are 95 % intervals over processes", *origins(rows)]
    return Sheet(
        heading="Error against latency, by precision",
        facts=facts(point_of(rows[0]), rows, VARIED),
        notes=notes,
        spec=frontier(rows, names),
        rows=[{**{name: row[name] for name in columns}, "best": any(row is each for each in unbeaten)} for row in rows],
        names=names,
    )


def frontier(rows: Sequence[Row], names: Sequence[str]) -> Spec:
    """Return the chart of errors against latencies: marks with intervals, rings around the best, and each precision."""
    ends = ("latency_s", "latency_low_s", "latency_high_s")
    times = [[row[name] for row in rows if row[name] is not None] for name in ends]
    errors = [row["error"] for row in rows]
    across, up = layout.limits(*times), layout.padded(min(errors), max(errors), NAMES_ROOM)
    at = layout.decimal(*across)
    powers = [10.0**power for power in range(math.ceil(math.log10(up[0])), math.floor(math.log10(up[1])) + 1)]
    x = alt.X("latency_s:Q", title="time per call", scale=log(across),
        axis=ticks(at, (units.seconds(tick, trim=True) for tick in at)))  # fmt: skip
    y = alt.Y("error:Q", title="error, relative to the largest value", scale=log(up),
        axis=ticks(powers, (f"{tick:.0e}".replace("e-0", "e-") for tick in powers)))  # fmt: skip
    rings = (
        chart()
        .transform_filter("datum.best")
        .mark_point(shape="circle", size=RING, filled=False, color="var(--quiet)", strokeWidth=THIN)
        .encode(x=x, y=y)
    )
    bars = (
        chart()
        .transform_filter("isValid(datum.latency_low_s)")
        .mark_rule(opacity=0.5, clip=True)
        .encode(x="latency_low_s:Q", x2="latency_high_s:Q", y=y, stroke=looks(names)["stroke"])
    )
    marks = chart().mark_point(size=SIZE, opacity=1).encode(x=x, y=y, **looks(names))
    precisions = (
        chart()
        .transform_aggregate(highest="max(error)", groupby=["dtype"])
        .mark_text(align="right", dx=-3, dy=-12, color="var(--quiet)", fontSize=SMALL_PX)
        .encode(x=alt.value("width"), y=alt.Y("highest:Q"), text="dtype:N")
    )
    return spec("Error against latency, by precision", rings, bars, marks, precisions, height=FRONTIER_PX)
