"""Labels beside each other that don't touch."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.show.figures.placement import Span, sideways_steps, spread

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


ENDS = st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda of: (float(of[0]), float(of[0] + of[1])))


@given(st.lists(ENDS, max_size=9))
def test_no_two_that_overlap_stand_in_one_place(spans: list[Span]) -> None:
    """Marks that share a step are apart in height; and a step separates those that are not."""
    moved = sideways_steps(spans)
    for (low, high, at), (other_low, other_high, other_at) in itertools.combinations(
        [(*span, step) for span, step in zip(spans, moved, strict=True)], 2
    ):
        if low <= other_high and other_low <= high:
            assert abs(at - other_at) >= 1


@given(st.lists(ENDS, max_size=9))
def test_a_mark_that_overlaps_none_is_not_moved(spans: list[Span]) -> None:
    """Only those that overlap another leave their place."""
    for index, ((low, high), step) in enumerate(zip(spans, sideways_steps(spans), strict=True)):
        others = [span for place, span in enumerate(spans) if place != index]
        if all(high < other_low or other_high < low for other_low, other_high in others):
            assert step == 0


def test_marks_that_overlap_are_centred() -> None:
    """Two stand half a step from their place, three a whole one, and what is missing takes no room."""
    assert sorted(sideways_steps([(1.0, 2.0), (1.5, 3.0)])) == [-0.5, 0.5]
    assert sorted(sideways_steps([(1.0, 2.0), (1.5, 3.0), (1.8, 1.9), (math.nan, math.nan)])) == [-1.0, 0.0, 0.0, 1.0]
    assert sideways_steps([]) == []
