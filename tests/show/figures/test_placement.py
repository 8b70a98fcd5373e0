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
    """Wherever labels want to be, two of them are a gap apart, in the order of their lines; none leaves the room."""
    placed = spread(wanted, GAP, 0, 20)
    assert all(above - below >= GAP - 1e-9 for below, above in itertools.pairwise(sorted(placed)))
    assert all(-1e-9 <= place <= 20 + 1e-9 for place in placed)
    for one, other in itertools.combinations(range(len(wanted)), 2):
        if wanted[one] < wanted[other]:
            assert placed[one] < placed[other]


@pytest.mark.parametrize(
    ("wanted", "placed"), [([3, 8, 5], [3, 8, 5]), ([5, 5, 5], [4, 5, 6]), ([20, 20], [19, 20]), ([0, 0], [0, 1])]
)
def test_labels_move_as_little_as_possible(wanted: list[float], placed: list[float]) -> None:
    """With room nothing moves; a crowd is spread about its middle, and at an edge grows away from it."""
    assert spread(wanted, GAP, 0, 20) == pytest.approx(placed)


ENDS = st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda of: (float(of[0]), float(of[0] + of[1])))


@given(st.lists(ENDS, max_size=9))
def test_no_two_that_overlap_stand_in_one_place(spans: list[Span]) -> None:
    """Marks that share a step are apart in height; only those that overlap another leave their place."""
    marks = [(*span, step) for span, step in zip(spans, sideways_steps(spans), strict=True)]
    crowded = set()
    for (one, (low, high, at)), (other, (other_low, other_high, other_at)) in itertools.combinations(
        enumerate(marks), 2
    ):
        if low <= other_high and other_low <= high:
            crowded |= {one, other}
            assert abs(at - other_at) >= 1
    assert all(step == 0 for index, (_, _, step) in enumerate(marks) if index not in crowded)


def test_marks_that_overlap_are_centred() -> None:
    """Two stand half a step from their place, three a whole one, and what is missing takes no room."""
    assert sorted(sideways_steps([(1.0, 2.0), (1.5, 3.0)])) == [-0.5, 0.5]
    assert sorted(sideways_steps([(1.0, 2.0), (1.5, 3.0), (1.8, 1.9), (math.nan, math.nan)])) == [-1.0, 0.0, 0.0, 1.0]
    assert sideways_steps([]) == []
