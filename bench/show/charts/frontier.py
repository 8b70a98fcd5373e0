"""The frontier picture: the error of each implementation and precision against its latency, at one shape."""

import math
from collections.abc import Iterator, Sequence

import altair as alt
import pandas as pd

from bench.analyse.series import Row, by, gathered, point_of
from bench.show.charts.base import SIZE, SMALL_PX, THIN, Sheet, Spec, chart, log, looks, spec, ticks
from bench.show.figures import layout
from bench.show.figures.page import facts
from bench.show.rows import is_measured, origins, plain
from bench.store import units

VARIED = frozenset({"dtype"})

FEWEST = 2
"""The number of precisions from which there is something to choose."""

MARGIN = 0.14
"""The room above and below the marks, as a share of the axis, for the names of the precisions."""

HEIGHT_PX = 380


def sheets(table: pd.DataFrame) -> Iterator[tuple[str, Sheet]]:
    """Yield the name and the picture of each shape of a table of results that was measured in several precisions.

    The name stays the same whatever else was measured.
    """
    judged = [row for row in plain(table) if is_measured(row) and row["error"]]
    for rows in gathered(judged, [], VARIED):
        if len(by(rows, "dtype")) >= FEWEST:
            yield f"frontier-{point_of(rows[0]).short_name(VARIED)}", sheet(rows)


def best(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that no other one beats in both time and error, the fastest first."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: (row["latency_s"], row["error"])):
        if not kept or row["error"] < kept[-1]["error"]:
            kept.append(row)
    return kept


def sheet(rows: Sequence[Row]) -> Sheet:
    """Return the picture of the rows of one shape as a file; each has a time and an error."""
    names, on_line = list(by(rows, "implementation")), best(rows)
    columns = ("implementation", "dtype", "error", "latency_s", "latency_low_s", "latency_high_s")
    notes = ["the line joins what nothing beats in both", "bars are 95 % intervals over processes", *origins(rows)]
    return Sheet(
        heading="Error against latency, by precision",
        facts=facts(point_of(rows[0]), rows, VARIED),
        notes=notes,
        spec=frontier(rows, names),
        rows=[{**{name: row[name] for name in columns}, "best": any(row is each for each in on_line)} for row in rows],
        names=names,
    )


def frontier(rows: Sequence[Row], names: Sequence[str]) -> Spec:
    """Return the chart of errors against latencies: marks with intervals, the line of the best, and each precision."""
    ends = ("latency_s", "latency_low_s", "latency_high_s")
    times = [[row[name] for row in rows if row[name] is not None] for name in ends]
    errors = [row["error"] for row in rows]
    across, up = layout.limits(*times), layout.padded(min(errors), max(errors), MARGIN)
    at = layout.decimal(*across)
    powers = [10.0**power for power in range(math.ceil(math.log10(up[0])), math.floor(math.log10(up[1])) + 1)]
    x = alt.X("latency_s:Q", title="time per call", scale=log(across),
        axis=ticks(at, (units.seconds(tick, trim=True) for tick in at)))  # fmt: skip
    y = alt.Y("error:Q", title="error, relative to the largest value", scale=log(up),
        axis=ticks(powers, (f"{tick:.0e}".replace("e-0", "e-") for tick in powers)))  # fmt: skip
    line = (
        chart()
        .transform_filter("datum.best")
        .mark_line(interpolate="step-after", color="var(--quiet)", strokeWidth=THIN)
        .encode(x=x, y=y, order="latency_s:Q")
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
    return spec("Error against latency, by precision", line, bars, marks, precisions, height=HEIGHT_PX)
