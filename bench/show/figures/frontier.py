"""The frontier picture: the error of each implementation and precision against its latency, at one shape."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.analyse.scaling.series import Row, by, gathered, point_of
from bench.plan.case import Point
from bench.show.figures import captions, log_axis, page
from bench.show.palette import style
from bench.show.rows import is_measured, origins, plain
from bench.store import units

VARIED = frozenset({"dtype"})

FEWEST = 2
"""The number of precisions from which there is something to choose."""

MARK_SIZE, BAR_WIDTH, LINE_WIDTH = 6.0, 1.0, 1.6

MARGIN = 0.14
"""The room above and below the marks, as a share of the axis, for the names of the precisions."""


@dataclass(frozen=True)
class Choice:
    """The data of a picture: the rows of one shape in several precisions, each with a time and an error."""

    point: Point
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        """The picture in one word: a file name that stays the same whatever else was measured."""
        return f"frontier-{self.point.short_name(VARIED)}"

    @property
    def frontier(self) -> list[Row]:
        """The rows that no other one beats in both time and error, the fastest first."""
        found: list[Row] = []
        for row in sorted(self.rows, key=lambda row: (row["latency_s"], row["error"])):
            if not found or row["error"] < found[-1]["error"]:
                found.append(row)
        return found


def figures(table: pd.DataFrame) -> Iterator[page.Drawing]:
    """Yield a picture of each shape of a table of results that was measured in several precisions."""
    return ((choice.name, figure(choice)) for choice in choices(table))


def choices(table: pd.DataFrame) -> Iterator[Choice]:
    """Yield the rows with a time and an error of each shape that has several precisions."""
    known = [row for row in plain(table) if is_measured(row) and row["error"]]
    for rows in gathered(known, [], VARIED):
        if len(by(rows, "dtype")) >= FEWEST:
            yield Choice(point_of(rows[0]), tuple(rows))


@page.styled()
def figure(choice: Choice) -> Figure:
    """Return the picture as a figure."""
    names = by(choice.rows, "implementation")
    made = page.new_figure(
        "Error against latency, by precision",
        captions.facts(choice.point, choice.rows, VARIED),
        ["the line joins what nothing beats in both", "bars are 95 % intervals over processes", *origins(choice.rows)],
        [page.names_height(names)],
        right=page.names_width(names),
    )
    axes = made.axes[0]
    _scale(axes, choice.rows)
    _line(axes, choice.frontier)
    for number, (name, rows) in enumerate(names.items()):
        _marks(axes, name, rows)
        page.write_name(axes, number, name, page.marker(style(name), MARK_SIZE, 1.0))
    for dtype, rows in by(choice.rows, "dtype").items():
        _name(axes, dtype, rows)
    return made


def _scale(axes: Axes, rows: Sequence[Row]) -> None:
    times = [[row[name] for row in rows] for name in ("latency_s", "latency_low_s", "latency_high_s")]
    errors = [row["error"] for row in rows]
    across = log_axis.limits(times[0], *([value for value in ends if value is not None] for ends in times[1:]))
    up = log_axis.padded(min(errors), max(errors), MARGIN)
    ticks = log_axis.decimal(*across)
    page.log_scale(axes.xaxis, across, ticks, [units.seconds(tick, trim=True) for tick in ticks])
    ticks = [10.0**power for power in range(math.ceil(math.log10(up[0])), math.floor(math.log10(up[1])) + 1)]
    page.log_scale(axes.yaxis, up, ticks, [f"{tick:.0e}".replace("e-0", "e-") for tick in ticks])
    axes.set_xlabel("time per call")
    axes.set_ylabel("error, relative to the largest value")


def _line(axes: Axes, frontier: Sequence[Row]) -> None:
    times, errors = [row["latency_s"] for row in frontier], [row["error"] for row in frontier]
    axes.plot(times, errors, color=page.GREY, linewidth=LINE_WIDTH, drawstyle="steps-post", zorder=1.5, gid="frontier")


def _marks(axes: Axes, name: str, rows: Sequence[Row]) -> None:
    look = style(name)
    for row in rows:
        if row["latency_low_s"] is not None:
            ends = row["latency_low_s"], row["latency_high_s"]
            axes.plot(ends, [row["error"]] * 2, color=look.colour, linewidth=BAR_WIDTH, alpha=0.5, zorder=2)
    options: dict[str, Any] = {"linestyle": "none", "zorder": 3, **page.marker(look, MARK_SIZE, 1.0)}
    times, errors = [row["latency_s"] for row in rows], [row["error"] for row in rows]
    axes.plot(times, errors, gid=f"error {name}", **options)


def _name(axes: Axes, dtype: str, rows: Sequence[Row]) -> None:
    """Write the name of a precision above its marks, at the right end."""
    axes.annotate(
        dtype,
        (axes.get_xlim()[1], max(row["error"] for row in rows)),
        xytext=(-2, 7),
        textcoords="offset points",
        ha="right",
        color=page.GREY,
        size=page.SMALL_SIZE,
        gid=f"dtype {dtype}",
    )
