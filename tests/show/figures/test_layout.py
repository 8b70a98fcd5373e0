"""Where an axis ends, where its ticks stand, and where labels and marks that would touch do."""

import itertools
import math
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.show.figures import layout
from bench.show.figures.layout import spread

GAP = 1.0
LOWS, SPANS = (st.floats(low, high).map(lambda power: 10**power) for low, high in ((-6, 7), (math.log10(1.1), 9)))


@pytest.mark.parametrize(
    ("ticks_of", "low", "high", "ticks"),
    [
        (layout.decimal, 4e-3, 3.2e-1, [5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1]),
        (layout.decimal, 2.2e-2, 1.15e-1, [3e-2, 5e-2, 7e-2, 1e-1]),
        (layout.decimal, 0.9, 1.45, [0.9, 1.0, 1.1, 1.2, 1.3, 1.4]),
        (layout.decimal, 1e-3, 4.0, [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0]),
        (layout.ratios, 0.56, 1.79, [0.6, 0.8, 1, 1.2, 1.4, 1.6]),
        (layout.ratios, 0.95, 1.05, [0.96, 0.98, 1, 1.02, 1.04]),
        (layout.ratios, 0.97, 1.17, [1, 1.05, 1.1, 1.15]),
        (layout.ratios, 0.98, 1.6, [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]),
        (layout.ratios, 0.02, 1.02, [0.02, 0.05, 0.1, 0.2, 0.5, 1]),
        (layout.binary, 2.1e6, 5e8, [2.0**power for power in range(22, 29)]),
        (layout.binary, 2**10, 2**30, [2.0**power for power in range(12, 31, 3)]),
        (layout.binary, 11 * 2**20, 12 * 2**20, [2**20 * fifths / 5 for fifths in range(55, 61)]),
    ],
)
def test_ticks_are_round_numbers(
    ticks_of: Callable[[float, float], list[float]], low: float, high: float, ticks: list[float]
) -> None:
    """Round decimals, ratios on both sides of 1, powers of two, and even steps of a unit on a short axis of memory."""
    assert ticks_of(low, high) == pytest.approx(ticks)


@given(LOWS, SPANS)
def test_every_axis_has_ticks_inside(low: float, span: float) -> None:
    """However long or short: no third of a decimal axis is without, and none has so many that they can't be read."""
    for ticks in (layout.decimal(low, low * span), layout.binary(low, low * span)):
        assert 2 <= len(ticks) <= 12
        assert all(low <= tick <= low * span for tick in ticks)
        assert ticks == sorted(set(ticks))
    ticks = layout.decimal(low, low * span)
    assert max(math.log(ticks[0] / low), math.log(low * span / ticks[-1])) < math.log(span) / 3


@given(st.floats(0.01, 0.99), st.floats(1.01, 100))
def test_ratios_stand_on_both_sides_of_1(low: float, high: float) -> None:
    """No half of the axis is without a ratio, 1 is among them, and none touch."""
    assume(high / low >= layout.LEAST_SPAN)
    ticks, span = layout.ratios(low, high), math.log(high / low)
    assert min(abs(tick - 1) for tick in ticks) < 1e-9
    assert all(math.log(b / a) > 0.049 * span for a, b in itertools.pairwise(ticks))
    assert all(math.log(b / a) < span / 2 for a, b in itertools.pairwise((low, *ticks, high)))


def test_limits_hold_values_and_their_intervals() -> None:
    """The axis leaves room around all that is drawn, passes over what is missing, and magnifies no noise.

    An interval over three decades widens it by half at most, besides the margins.
    """
    low, high = layout.limits([1.0, 2.0, math.nan], [0.9, math.nan], [2.2, math.nan])
    assert 0.8 < low < 0.9
    assert 2.2 < high < 2.5
    low, high = layout.limits([1.0, 2.0], [1e-3], [1e3])
    assert 0.5 < low < 1 / 1.5
    assert 3 < high < 4
    low, high = layout.limits([1.0, 1.0], [], [])
    assert high / low >= layout.LEAST_SPAN


@given(st.lists(st.floats(0, 20), min_size=1, max_size=15))
def test_no_two_labels_touch(targets: list[float]) -> None:
    """Wherever labels want to be, between two of them is a gap, in the order of their lines; none leaves the room."""
    places = spread(targets, GAP, 0, 20)
    assert all(above - below >= GAP - 1e-9 for below, above in itertools.pairwise(sorted(places)))
    assert all(-1e-9 <= place <= 20 + 1e-9 for place in places)
    for one, other in itertools.combinations(range(len(targets)), 2):
        if targets[one] < targets[other]:
            assert places[one] < places[other]


@pytest.mark.parametrize(
    ("targets", "places"), [([3, 8, 5], [3, 8, 5]), ([5, 5, 5], [4, 5, 6]), ([20, 20], [19, 20]), ([0, 0], [0, 1])]
)
def test_labels_move_as_little_as_possible(targets: list[float], places: list[float]) -> None:
    """With room nothing moves; a crowd is spread about its middle, and at an edge grows away from it."""
    assert spread(targets, GAP, 0, 20) == pytest.approx(places)
