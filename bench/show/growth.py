"""The picture of how a series grows: latencies with their fitted curves and crossovers, and all local exponents."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.analyse.scaling.growth import Scaling, scalings
from bench.show import page, panels
from bench.show.captions import facts, notes, x_label
from bench.show.frame import (
    AXES_HEIGHT,
    AXES_WIDTH,
    FOOT,
    LABEL_GAP,
    LABEL_START,
    LEFT,
    ROW_HEIGHT,
)
from bench.show.lettering import SMALL_SIZE, text_width, wrapped
from bench.show.page import EDGE, NOTE_LINE, Drawing, styled
from bench.show.pictures import LATENCY, Picture, picture
from bench.show.rows import is_measured, plain

PANEL, GAP = 1.6, 0.24
"""The height of a panel of exponents, and what is left between panels, in inches."""

Panel = tuple[float, Callable[[Axes], None]]
"""The height of some axes in inches, and what draws on them."""


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
    found = picture(of.rows, LATENCY, of.axis, None)
    assert found is not None, "a series holds latencies"
    return found


def _figure(of: Scaling, shown: Picture) -> Figure:
    width, drawn = _width(of, shown), list(_panels(of, shown))
    subtitle = wrapped(facts(shown), width - 2 * EDGE)
    footnotes = wrapped(list(_notes(of, shown)), width - 2 * EDGE, SMALL_SIZE)
    *tops, end = accumulate([tall + GAP for tall, _ in drawn], initial=page.head_height(len(subtitle)))
    height = end - GAP + FOOT + NOTE_LINE * len(footnotes)
    made = Figure(figsize=(width, height), facecolor="white")
    for top, (tall, draw_on) in zip(tops, drawn, strict=True):
        axes = made.add_axes((LEFT / width, 1 - (top + tall) / height, AXES_WIDTH / width, tall / height))
        panels.along(axes, shown.xs)
        draw_on(axes)
    bottom = made.axes[-1]
    bottom.set_xticks(shown.xs, labels=page.tick_labels(shown.xs, bottom.get_xlim(), AXES_WIDTH))
    bottom.set_xlabel(x_label(shown))
    page.write(made, f"How latency and memory grow with {of.axis.name}", subtitle, footnotes)
    return made


def _panels(of: Scaling, shown: Picture) -> Iterator[Panel]:
    if of.crossovers:
        yield ROW_HEIGHT * len(of.crossovers), partial(panels.crossovers, found=of.crossovers)
    tall = max(AXES_HEIGHT, LABEL_GAP * (len(shown.lines) + 2))
    yield tall, partial(panels.latency, of=of, shown=shown)
    for label, exponents in (
        ("exponent\nof latency", {growth.implementation: growth.latency for growth in of.growths}),
        ("exponent of\npeak memory", {growth.implementation: growth.memory for growth in of.growths}),
    ):
        if any(exponents.values()):
            yield PANEL, partial(panels.exponents, label=label, found=exponents)


def _width(of: Scaling, shown: Picture) -> float:
    words = [*(line.label for line in shown.lines), *map(panels.change, of.crossovers)]
    return LEFT + AXES_WIDTH + LABEL_START + max(map(text_width, words)) + EDGE


def _notes(of: Scaling, shown: Picture) -> Iterator[str]:
    band, *origin = notes(shown)
    yield band.replace("band", "bars")
    yield "marks that would overlap stand side by side on grey, each at the height of its own time"
    if any(growth.fit for growth in of.growths):
        yield "curves: a + b·N + c·N² fitted to the latencies"
    if of.crossovers:
        yield "→: where the winner changes, with its 95 % interval where it has one"
    yield "an exponent stands between its two places"
    yield from origin
