"""Pictures of one metric along one axis, a line for each implementation."""

import math
from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.show.figures import log_axis, page
from bench.show.figures.captions import facts
from bench.show.figures.end_labels import draw_failures, draw_labels
from bench.show.figures.line_data import Picture, pictures
from bench.show.figures.line_styles import draw_lines
from bench.show.figures.page import AXES_HEIGHT, LABEL_GAP, LABEL_START, ROW_HEIGHT, Drawing, styled, text_width
from bench.show.rows import origins, process_count
from bench.store import units
from bench.store.metrics import Unit

STRIP_GAP = 0.12
"""The gap between the lines and the strip of failures, in inches."""

TICK_LENGTH = 3.5


def figures(table: pd.DataFrame) -> Iterator[Drawing]:
    """Yield every picture that a table of results has values for."""
    return ((picture.name, figure(picture)) for picture in pictures(table))


@styled()
def figure(picture: Picture) -> Figure:
    """Return the picture as a figure."""
    by = ", by allocator" if picture.by_allocator else ""
    names = [*(line.label for line in picture.lines), *(each.implementation for each in picture.failures)]
    made = page.new_figure(
        f"{_filled(picture.quantity.axis.title, picture)} against {picture.axis.name}{by}",
        facts(picture.point, picture.rows, picture.varying),
        notes(picture),
        [plot_height(picture), *([ROW_HEIGHT * len(picture.failures)] if picture.failures else [])],
        right=LABEL_START + max(map(text_width, [*names, picture.reference])) + page.EDGE,
        gap=STRIP_GAP,
    )
    page.share_places(made, picture.xs, x_label(picture))
    main, bottom = made.axes[0], made.axes[-1]
    bottom.tick_params(axis="x", length=TICK_LENGTH)
    set_vertical_scale(main, picture)
    draw_lines(main, picture)
    draw_labels(main, picture)
    if picture.failures:
        draw_failures(bottom, picture.failures)
    return made


def plot_height(picture: Picture) -> float:
    """Return a height in inches that has room for the label of every line."""
    return max(AXES_HEIGHT, LABEL_GAP * (len(picture.lines) + 2))


def x_label(picture: Picture) -> str:
    """Return the label of the horizontal axis."""
    follows = "  (token length = channels)" if "token_len" in picture.varying else ""
    return f"{picture.axis.name} {picture.axis.symbol}{follows}"


def notes(picture: Picture) -> list[str]:
    """Return the footnotes: what the bands are, and the origin of the numbers."""
    if not picture.quantity.axis.low:
        return origins(picture.rows)
    processes = process_count(row for row in picture.rows if row["status"] == "ok")
    has_band = any(math.isfinite(low) for line in picture.lines for low in line.lows)
    band = f"band: 95 % interval over {processes}" if has_band else f"{processes}, so no interval"
    return [band, *origins(picture.rows)]


def set_vertical_scale(axes: Axes, picture: Picture) -> None:
    """Scale the vertical axis for the values of a picture, with ticks at round numbers of its unit."""
    relative, unit = picture.quantity.axis.relative, picture.quantity.metric.unit
    ends = log_axis.limits(
        [*((1.0,) if relative else ()), *(value for line in picture.lines for value in line.values)],
        [low for line in picture.lines for low in line.lows],
        [high for line in picture.lines for high in line.highs],
    )
    round_numbers = log_axis.binary if unit is Unit.BYTES else log_axis.decimal
    ticks = log_axis.ratios(*ends) if relative else round_numbers(*ends)
    page.log_scale(axes.yaxis, ends, ticks, [units.formatted(tick, unit, trim=True) for tick in ticks])
    axes.set_ylabel(_filled(picture.quantity.axis.label, picture))


def _filled(text: str, picture: Picture) -> str:
    return text.format(baseline=picture.baseline or "the baseline")
