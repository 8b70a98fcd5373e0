"""The roofline picture: the rate of each case against its operations per byte, under the ceilings of the device."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import pandas as pd

from bench.analyse.series import Row, by, point_of
from bench.plan.case import COLUMNS
from bench.plan.layers import Roof, roof_of, work_of
from bench.show.charts.base import SIZE, SMALL_PX, Sheet, Spec, chart, inline, log, looks, spec, ticks
from bench.show.figures import layout
from bench.show.rows import devices, is_measured, origins, plain
from bench.show.text import parts
from bench.store import units

FIXED = ("layer", *(name for name, column in COLUMNS.items() if column.option == "execution"))
"""The columns that all points of a picture share; their shapes differ."""

ROOM = 2.0
"""The axes reach beyond the outermost case, or the ridge of the roof, by this factor."""

HEIGHT_PX = 400


def sheets(table: pd.DataFrame) -> Iterator[tuple[str, Sheet]]:
    """Yield the name and the picture of each setting of a table of results whose ceilings are known.

    A setting is a layer, device, dtype, mode and so on. The name stays the same whatever else was measured.
    """
    settings: dict[tuple[object, ...], list[Row]] = {}
    for row in plain(table):
        if is_measured(row) and row["flops_per_s"] is not None and roof_of(row) is not None:
            settings.setdefault(tuple(row[name] for name in FIXED), []).append(row)
    for rows in settings.values():
        yield f"roofline-{point_of(rows[0]).short_name(set(COLUMNS) - set(FIXED))}", sheet(rows)


def sheet(rows: Sequence[Row]) -> Sheet:
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
            *origins(rows),
        ],
        spec=roofline(marks, highest, names),
        rows=marks,
        names=names,
    )


def roofline(rows: Sequence[Row], roof: Roof, names: Sequence[str]) -> Spec:
    """Return the chart of the rates: marks of cases, the roof, and its two ceilings in words."""
    intensities = [*(row["intensity"] for row in rows), roof.ridge]
    left, right = min(intensities) / ROOM, max(intensities) * ROOM
    values = [*(row["rate"] for row in rows), roof.reached(left), roof.reached(right)]
    ends = layout.padded(min(values), max(values))
    across, up = layout.decimal(left, right), layout.decimal(*ends)
    x = alt.X("intensity:Q", title="operations per byte", scale=log((left, right)),
        axis=ticks(across, (f"{tick:g}" for tick in across)))  # fmt: skip
    y = alt.Y("rate:Q", title="operations per second", scale=log(ends),
        axis=ticks(up, (units.rate(tick, "FLOP/s", trim=True) for tick in up)))  # fmt: skip
    corners = [{"intensity": at, "rate": roof.reached(at)} for at in (left, roof.ridge, right)]
    line = inline(corners).mark_line(color="var(--ink)", strokeWidth=1.8).encode(x=x, y=y)
    flat = f"matrix products {units.rate(roof.flops_per_s, 'FLOP/s')}"
    slope = f"copy {units.rate(roof.bytes_per_s, 'B/s')}"
    style: dict[str, Any] = {"color": "var(--quiet)", "fontSize": SMALL_PX}
    words = [
        inline(corners[2:]).mark_text(align="right", dy=-7, **style).encode(x=x, y=y, text=alt.value(flat)),
        inline(corners[:1]).mark_text(align="left", dx=12, **style).encode(x=x, y=y, text=alt.value(slope)),
    ]
    marks = chart().mark_point(size=SIZE, opacity=0.85).encode(x=x, y=y, **looks(names))
    description = "Operations per second against operations per byte, under the roof of the device"
    return spec(description, line, marks, *words, height=HEIGHT_PX)
