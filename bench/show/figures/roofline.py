"""The roofline picture: the rate of each case against its operations per byte, under the ceilings of the device."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.analyse.scaling.series import Row, by, point_of
from bench.plan.case import COLUMNS, Point
from bench.show.figures import log_axis, page
from bench.show.figures.line_axes import AXES_HEIGHT, AXES_WIDTH, FOOT, LABEL_GAP
from bench.show.figures.page import EDGE, GREY, INK, NOTE_LINE, Drawing, styled
from bench.show.figures.text_metrics import SMALL_SIZE, text_width, wrapped
from bench.show.palette import ink, style
from bench.show.point_text import parts
from bench.show.rows import is_measured, plain
from bench.store import units
from bench.store.roofline import Roof, roof_of, work_of

FIXED = ("layer", *(name for name, column in COLUMNS.items() if column.option == "execution"))
"""The columns that all points of a picture share; their shapes differ."""

LEFT = 1.25
"""The room for the numbers beside the axes, in inches."""

ROOM = 2.0
"""The axes reach beyond the outermost case, or the ridge of the roof, by this factor."""

MARK_SIZE, MARK_ALPHA, ROOF_WIDTH = 5.0, 0.85, 1.4

NAME_START, SAMPLE = 0.36, 0.2
"""From the axes to the names of implementations and to their marks, in inches."""


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


def figures(table: pd.DataFrame) -> Iterator[Drawing]:
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


def figure(rates: Rates) -> Figure:
    """Return the picture as a figure."""
    with styled():
        return _figure(rates)


def _figure(rates: Rates) -> Figure:
    names = by(rates.rows, "implementation")
    width = LEFT + AXES_WIDTH + NAME_START + max(map(text_width, names)) + EDGE
    subtitle = wrapped(_facts(rates), width - 2 * EDGE)
    footnotes = wrapped(list(_notes(rates)), width - 2 * EDGE, SMALL_SIZE)
    foot = FOOT + NOTE_LINE * len(footnotes)
    tall = max(AXES_HEIGHT, LABEL_GAP * (len(names) + 1))
    height = page.head_height(len(subtitle)) + tall + foot
    figure = Figure(figsize=(width, height), facecolor="white")
    axes = figure.add_axes((LEFT / width, foot / height, AXES_WIDTH / width, tall / height))
    _scale(axes, rates)
    _roof(axes, rates.roof)
    for number, (name, rows) in enumerate(names.items()):
        _marks(axes, name, rates, rows)
        _name(axes, name, 1 - LABEL_GAP * (number + 0.5) / tall)
    page.write(figure, "Rate against operations per byte, and the device's ceilings", subtitle, footnotes)
    return figure


def _facts(rates: Rates) -> list[str]:
    devices = dict.fromkeys(row["device_name"] for row in rates.rows if row["device_name"])
    return [*parts(rates.point, FIXED), *devices]


def _notes(rates: Rates) -> Iterator[str]:
    yield "a mark is a case at its latency; the line is the most that this device was seen to reach"
    yield "bytes: input, weights and output, each moved once"
    yield from dict.fromkeys(f"torch {row['torch_version']}" for row in rates.rows if row["torch_version"])
    yield from dict.fromkeys(f"commit {row['commit']}" for row in rates.rows if row["commit"])


def _scale(axes: Axes, rates: Rates) -> None:
    intensities = [*rates.intensities, rates.roof.ridge]
    left, right = min(intensities) / ROOM, max(intensities) * ROOM
    values = [row["flops_per_s"] for row in rates.rows]
    ceilings = [rates.roof.reached(left), rates.roof.reached(right)]
    ends = log_axis.padded(min(*values, *ceilings), max(*values, *ceilings))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(ends)
    across, up = log_axis.decimal(left, right), log_axis.decimal(*ends)
    axes.set_xticks(across, labels=[f"{tick:g}" for tick in across])
    axes.set_yticks(up, labels=[units.rate(tick, "FLOP/s", trim=True) for tick in up])
    axes.set_xticks([], minor=True)
    axes.set_yticks([], minor=True)
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("operations per second")


def _roof(axes: Axes, roof: Roof) -> None:
    low, high = axes.get_xlim()
    xs = np.array([low, roof.ridge, high])
    axes.plot(xs, [roof.reached(x) for x in xs], color=INK, linewidth=ROOF_WIDTH, zorder=2.5, gid="roof")
    flat, slope = units.rate(roof.flops_per_s, "FLOP/s"), units.rate(roof.bytes_per_s, "B/s")
    text_options: dict[str, Any] = {"color": GREY, "size": SMALL_SIZE, "textcoords": "offset points", "va": "bottom"}
    axes.annotate(f"matrix products {flat}", (high, roof.flops_per_s), xytext=(0, 4), ha="right", **text_options)
    axes.annotate(f"copy {slope}", (low, roof.reached(low)), xytext=(10, 0), **text_options)


def _marks(axes: Axes, name: str, rates: Rates, rows: Sequence[Row]) -> None:
    at = {id(row): intensity for row, intensity in zip(rates.rows, rates.intensities, strict=True)}
    xs, ys = [at[id(row)] for row in rows], [row["flops_per_s"] for row in rows]
    axes.plot(xs, ys, gid=f"rate {name}", **_mark_options(name))


def _name(axes: Axes, name: str, place: float) -> None:
    """Write a name beside the axes, with its mark."""
    x = 1 + SAMPLE / AXES_WIDTH
    axes.plot([x], [place], transform=axes.transAxes, clip_on=False, **_mark_options(name))
    axes.text(
        1 + NAME_START / AXES_WIDTH,
        place,
        name,
        transform=axes.transAxes,
        color=ink(style(name).colour),
        va="center_baseline",
        gid=f"label {name}",
    )


def _mark_options(name: str) -> dict[str, Any]:
    own = style(name)
    return {
        "linestyle": "none",
        "marker": own.marker,
        "markersize": MARK_SIZE,
        "markerfacecolor": "white" if own.hollow else own.colour,
        "markeredgecolor": own.colour,
        "alpha": MARK_ALPHA,
        "zorder": 3,
    }
