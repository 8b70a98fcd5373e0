"""What is drawn into the picture of how a series grows."""

import math

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from bench.analyse.scaling.crossover import Crossover
from bench.analyse.scaling.growth import Exponent
from bench.show.figures import scaling_panels
from bench.show.figures.page import share_places
from bench.show.palette import style
from bench.stats.estimates import Interval

PLACES = (100, 400, 1600)
NO_INTERVAL = (math.nan, math.nan)


def axes() -> Axes:
    """Return axes with the scale that panels share."""
    figure = Figure()
    figure.add_subplot()
    share_places(figure, PLACES, "tokens")
    return figure.axes[0]


def test_exponents_stand_between_their_places_side_by_side() -> None:
    """Two implementations are at a third and two thirds of the way, in logarithms."""
    made = axes()
    gaps = [Exponent(100, 400, Interval(1.0, 0.8, 1.2)), Exponent(400, 1600, Interval(2.0, 1.8, 2.2))]
    scaling_panels.exponents(made, "exponent", {"eager": gaps, "sdpa": gaps})
    places = {str(line.get_gid()): np.asarray(line.get_xdata()) for line in made.lines}
    assert places["exponent eager"] == pytest.approx([100 * 4 ** (1 / 3), 400 * 4 ** (1 / 3)])
    assert places["exponent sdpa"] == pytest.approx([100 * 4 ** (2 / 3), 400 * 4 ** (2 / 3)])


def test_a_wild_interval_does_not_flatten_the_others() -> None:
    """An axis of exponents reaches a little beyond the values, however wide one interval is."""
    made = axes()
    scaling_panels.exponents(made, "exponent", {"eager": [Exponent(100, 400, Interval(1.0, -40, 42))]})
    low, high = made.get_ylim()
    assert -1 < low < 0
    assert 2 < high < 3


def test_exact_exponents_have_no_bars() -> None:
    """Memory is counted, so that its marks stand alone."""
    made = axes()
    scaling_panels.exponents(made, "exponent", {"eager": [Exponent(100, 400, Interval(2.0, *NO_INTERVAL))]})
    assert len(made.collections) == 0
    scaling_panels.exponents(made, "exponent", {"eager": [Exponent(100, 400, Interval(2.0, 1.9, 2.1))]})
    assert len(made.collections) == 1


@pytest.mark.parametrize(
    ("tokens", "ends"),
    [
        (Interval(300, 200, 500), [200, 500]),
        (Interval(150, 0, 300), [None, 300]),
        (Interval(900, 700, math.inf), [700, None]),
    ],
)
def test_a_crossover_has_a_bar_as_far_as_it_is_known(tokens: Interval, ends: list[float | None]) -> None:
    """An open end goes to the edge of the axis, in the colour of who leads afterwards."""
    made = axes()
    scaling_panels.crossovers(made, [Crossover("eager", "sdpa", tokens)])
    bar, mark = made.lines
    wanted = [end if end is not None else edge for end, edge in zip(ends, made.get_xlim(), strict=True)]
    assert list(np.asarray(bar.get_xdata())) == pytest.approx(wanted)
    assert list(np.asarray(mark.get_xdata())) == [tokens.value]
    assert to_hex(mark.get_color()) == style("sdpa").colour


def test_a_crossover_without_an_interval_is_a_mark() -> None:
    """One process says where, and not how sure that is."""
    made = axes()
    scaling_panels.crossovers(made, [Crossover("eager", "sdpa", Interval(300, *NO_INTERVAL))])
    assert [line.get_gid() for line in made.lines] == ["crossover eager sdpa"]
    assert scaling_panels.change(Crossover("eager", "sdpa", Interval(300, *NO_INTERVAL))) == "eager → sdpa at 300"
