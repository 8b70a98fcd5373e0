"""Labels beside each other that don't touch."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.show.figures.placement import spread

GAP = 1.0
PLACES = st.lists(st.floats(0, 20), min_size=1, max_size=15)


@given(PLACES)
def test_no_two_labels_touch(wanted: list[float]) -> None:
    """Wherever labels want to be, two of them are a gap apart."""
    placed = sorted(spread(wanted, GAP, 0, 20))
    assert all(above - below >= GAP - 1e-9 for below, above in itertools.pairwise(placed))


@given(PLACES)
def test_labels_keep_the_order_of_their_lines(wanted: list[float]) -> None:
    """A higher line has a higher label."""
    placed = spread(wanted, GAP, 0, 20)
    for one, other in itertools.combinations(range(len(wanted)), 2):
        if wanted[one] < wanted[other]:
            assert placed[one] < placed[other]


@given(PLACES)
def test_labels_stay_inside(wanted: list[float]) -> None:
    """Where there is room for all, none leaves it."""
    assert all(-1e-9 <= place <= 20 + 1e-9 for place in spread(wanted, GAP, 0, 20))


def test_labels_with_room_stay_beside_their_lines() -> None:
    """Nothing moves that need not."""
    assert spread([3, 8, 5], GAP, 0, 20) == [3, 8, 5]


def test_a_crowd_is_spread_about_its_middle() -> None:
    """Labels that want the same place move as little as possible, half up and half down."""
    assert spread([5, 5, 5], GAP, 0, 20) == pytest.approx([4, 5, 6])


def test_a_crowd_at_an_edge_grows_away_from_it() -> None:
    """At the top they go down, at the bottom up."""
    assert spread([20, 20], GAP, 0, 20) == pytest.approx([19, 20])
    assert spread([0, 0], GAP, 0, 20) == pytest.approx([0, 1])
