"""The picture of a series: latencies with their fitted curves and crossovers, and the local exponents."""

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from bench.analyse.scaling.growth import Scaling, scalings
from bench.show.figures import page, scaling_panels
from bench.show.figures.captions import facts
from bench.show.figures.line_data import LATENCY, Picture, picture
from bench.show.figures.lines import notes, plot_height, x_label
from bench.show.figures.page import EDGE, LABEL_START, ROW_HEIGHT, Drawing, styled, text_width
from bench.show.rows import is_measured, plain

PANEL, GAP = 1.6, 0.24
"""The height of a panel of exponents, and the gap between panels, in inches."""


def figures(table: pd.DataFrame) -> Iterator[Drawing]:
    """Yield a picture of each series of a table of results."""
    return ((name(each), figure(each)) for each in scalings(row for row in plain(table) if is_measured(row)))


def name(of: Scaling) -> str:
    """Return the picture in one word: a file name that stays the same whatever else was measured."""
    return f"scaling-{_latencies(of).name.removeprefix(f'{LATENCY.name}-')}"


@styled()
def figure(of: Scaling) -> Figure:
    """Return the picture of a series as a figure."""
    latencies = _latencies(of)
    exponents = {
        "exponent\nof latency": {growth.implementation: growth.latency for growth in of.growths},
        "exponent of\npeak memory": {growth.implementation: growth.memory for growth in of.growths},
    }
    exponents = {label: slopes for label, slopes in exponents.items() if any(slopes.values())}
    words = [*(line.label for line in latencies.lines), *map(scaling_panels.change, of.crossovers)]
    made = page.new_figure(
        f"How latency and memory grow with {of.axis.name}",
        facts(latencies.point, latencies.rows, latencies.varying),
        list(_notes(of, latencies)),
        [
            *([ROW_HEIGHT * len(of.crossovers)] if of.crossovers else []),
            plot_height(latencies),
            *[PANEL] * len(exponents),
        ],
        right=LABEL_START + max(map(text_width, words)) + EDGE,
        gap=GAP,
    )
    page.share_places(made, latencies.xs, x_label(latencies))
    panels = iter(made.axes)
    if of.crossovers:
        scaling_panels.crossovers(next(panels), of.crossovers)
    scaling_panels.latency(next(panels), of, latencies)
    for axes, (label, slopes) in zip(panels, exponents.items(), strict=True):
        scaling_panels.exponents(axes, label, slopes)
    return made


def _latencies(of: Scaling) -> Picture:
    latencies = picture(of.rows, LATENCY, of.axis, None)
    assert latencies is not None, "a series holds latencies"
    return latencies


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
