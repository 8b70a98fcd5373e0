"""Marks that would overlap, side by side."""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from bench.show.figures.asides import Span, asides

ENDS = st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda of: (float(of[0]), float(of[0] + of[1])))


@given(st.lists(ENDS, max_size=9))
def test_no_two_that_overlap_stand_in_one_place(spans: list[Span]) -> None:
    """Marks that share a step are apart in height; and a step separates those that are not."""
    moved = asides(spans)
    for (low, high, at), (other_low, other_high, other_at) in itertools.combinations(
        [(*span, step) for span, step in zip(spans, moved, strict=True)], 2
    ):
        if low <= other_high and other_low <= high:
            assert abs(at - other_at) >= 1


@given(st.lists(ENDS, max_size=9))
def test_a_mark_that_overlaps_none_is_not_moved(spans: list[Span]) -> None:
    """Only those that overlap another leave their place."""
    for index, ((low, high), step) in enumerate(zip(spans, asides(spans), strict=True)):
        others = [span for place, span in enumerate(spans) if place != index]
        if all(high < other_low or other_high < low for other_low, other_high in others):
            assert step == 0


def test_marks_that_overlap_are_centred() -> None:
    """Two stand half a step from their place, three a whole one, and what is missing takes no room."""
    assert sorted(asides([(1.0, 2.0), (1.5, 3.0)])) == [-0.5, 0.5]
    assert sorted(asides([(1.0, 2.0), (1.5, 3.0), (1.8, 1.9), (math.nan, math.nan)])) == [-1.0, 0.0, 0.0, 1.0]
    assert asides([]) == []
