"""The picture of a series: latencies with their fitted curves and crossovers, and the local exponents."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.analyse.scaling.growth import Scaling, scalings
from bench.show.figures import page, scaling_panels
from bench.show.figures.line_axes import (
    AXES_HEIGHT,
    AXES_WIDTH,
    FOOT,
    LABEL_GAP,
    LABEL_START,
    LEFT,
    ROW_HEIGHT,
)
from bench.show.figures.line_captions import facts, notes, x_label
from bench.show.figures.line_data import LATENCY, Picture, picture
from bench.show.figures.page import EDGE, NOTE_LINE, Drawing, styled
from bench.show.figures.text_metrics import SMALL_SIZE, text_width, wrapped
from bench.show.rows import is_measured, plain

PANEL, GAP = 1.6, 0.24
"""The height of a panel of exponents, and the gap between panels, in inches."""

Panel = tuple[float, Callable[[Axes], None]]
"""The height of a panel in inches, and the function that draws on its axes."""


def figures(table: pd.DataFrame) -> Iterator[Drawing]:
    """Yield a picture of each series of a table of results."""
    return ((name(each), figure(each)) for each in scalings(row for row in plain(table) if is_measured(row)))


def name(of: Scaling) -> str:
    """Return the picture in one word: a file name that stays the same whatever else was measured."""
    return f"scaling-{_latencies(of).name.removeprefix(f'{LATENCY.name}-')}"


def figure(of: Scaling) -> Figure:
    """Return the picture of a series as a figure."""
    with styled():
        return _figure(of, _latencies(of))


def _latencies(of: Scaling) -> Picture:
    latencies = picture(of.rows, LATENCY, of.axis, None)
    assert latencies is not None, "a series holds latencies"
    return latencies


def _figure(of: Scaling, latencies: Picture) -> Figure:
    width, panels = _width(of, latencies), list(_panels(of, latencies))
    subtitle = wrapped(facts(latencies), width - 2 * EDGE)
    footnotes = wrapped(list(_notes(of, latencies)), width - 2 * EDGE, SMALL_SIZE)
    *tops, end = accumulate([tall + GAP for tall, _ in panels], initial=page.head_height(len(subtitle)))
    height = end - GAP + FOOT + NOTE_LINE * len(footnotes)
    figure = Figure(figsize=(width, height), facecolor="white")
    for top, (tall, draw_on) in zip(tops, panels, strict=True):
        axes = figure.add_axes((LEFT / width, 1 - (top + tall) / height, AXES_WIDTH / width, tall / height))
        scaling_panels.set_horizontal_scale(axes, latencies.xs)
        draw_on(axes)
    bottom = figure.axes[-1]
    bottom.set_xticks(latencies.xs, labels=page.tick_labels(latencies.xs, bottom.get_xlim(), AXES_WIDTH))
    bottom.set_xlabel(x_label(latencies))
    page.write(figure, f"How latency and memory grow with {of.axis.name}", subtitle, footnotes)
    return figure


def _panels(of: Scaling, latencies: Picture) -> Iterator[Panel]:
    if of.crossovers:
        yield ROW_HEIGHT * len(of.crossovers), partial(scaling_panels.crossovers, changes=of.crossovers)
    tall = max(AXES_HEIGHT, LABEL_GAP * (len(latencies.lines) + 2))
    yield tall, partial(scaling_panels.latency, of=of, picture=latencies)
    for label, exponents in (
        ("exponent\nof latency", {growth.implementation: growth.latency for growth in of.growths}),
        ("exponent of\npeak memory", {growth.implementation: growth.memory for growth in of.growths}),
    ):
        if any(exponents.values()):
            yield PANEL, partial(scaling_panels.exponents, label=label, exponents_of=exponents)


def _width(of: Scaling, latencies: Picture) -> float:
    words = [*(line.label for line in latencies.lines), *map(scaling_panels.change, of.crossovers)]
    return LEFT + AXES_WIDTH + LABEL_START + max(map(text_width, words)) + EDGE


def _notes(of: Scaling, latencies: Picture) -> Iterator[str]:
    band, *origin = notes(latencies)
    yield band.replace("band", "bars")
    yield "marks that would overlap stand side by side on grey, each at the height of its own time"
    if any(growth.fit for growth in of.growths):
        yield "curves: a + b·N + c·N² fitted to the latencies"
    if of.crossovers:
        yield "→: where the winner changes, with its 95 % interval if it has one"
    yield "an exponent is drawn between its two places"
    yield from origin
