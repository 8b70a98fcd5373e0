"""The time that a sweep still needs."""

import pytest

from bench.harness import time_left
from bench.harness.time_left import TimeLeft, Until
from tests.clock import Clock
from tests.points import point

MEASURED_S = {50: 23, 197: 30, 577: 76, 1024: 151}
"""The seconds of points by their tokens, as the published run of `quick` took them: batch 8, 384 channels, 6 heads."""

POINTS = [point(batch=8, num_tokens=tokens, channels=384, num_heads=6) for tokens in MEASURED_S]


def test_nothing_is_told_before_anything_is_known() -> None:
    """Neither at the beginning, nor from points that were there already."""
    left = TimeLeft(POINTS, 2)
    assert left.left_s() is None
    assert left.left_s(POINTS[0], 5.0) is None
    left.finished(POINTS[0], 0.01)
    assert left.left_s() is None


def test_the_first_processes_tell_before_the_first_point_is_done() -> None:
    """One of two processes took ten seconds, so the other one takes as long."""
    left = TimeLeft(POINTS[:1], 2)
    assert left.left_s(POINTS[0], 0.1, 0) is None
    assert left.left_s(POINTS[0], 10.0, 1) == pytest.approx(10.0)


def test_processes_of_an_earlier_session_took_no_time_of_this_one() -> None:
    """A run goes on with the third of five processes: when that is done two more are left."""
    left = TimeLeft(POINTS[:1], 5)
    assert left.left_s(POINTS[0], 0.1, 2) is None
    assert left.left_s(POINTS[0], 10.0, 3) == pytest.approx(20.0)


def test_a_process_that_took_no_time_tells_nothing() -> None:
    """A clock may not have moved yet when the first process is seen."""
    left = TimeLeft(POINTS, 2)
    assert left.left_s(POINTS[0], 0.0, 0) is None
    assert left.left_s(POINTS[0], 0.0, 1) is None


@pytest.mark.parametrize("is_reversed", [False, True])
def test_larger_points_take_longer(is_reversed: bool) -> None:
    """From a third of the time on, the estimate is within a quarter of the truth, though sizes differ widely."""
    order = POINTS[::-1] if is_reversed else POINTS
    left, whole_s, passed_s = TimeLeft(order, 2), sum(MEASURED_S.values()), 0.0
    for each in order[:-1]:
        took_s = MEASURED_S[each.num_tokens]
        left.finished(each, took_s)
        passed_s += took_s
        if passed_s > whole_s / 3:
            assert left.left_s() == pytest.approx(whole_s - passed_s, rel=0.25)


def test_it_ends_with_nothing_left() -> None:
    """When every point is done no time is left; a point that takes longer than expected is never below zero."""
    left = TimeLeft(POINTS[:2], 2)
    left.finished(POINTS[0], 10.0)
    assert left.left_s(POINTS[1], 1e6) == 0
    left.finished(POINTS[1], 10.0)
    assert left.left_s() == 0


def test_precisions_of_a_point_count_once() -> None:
    """They are measured together, so the second is there when the first is done."""
    pair = [point(num_tokens=50, dtype=dtype) for dtype in ("float32", "bfloat16")]
    left = TimeLeft([*pair, *POINTS[1:2]], 2)
    left.finished(pair[0], 30.0)
    before = left.left_s()
    left.finished(pair[1], 0.0)
    assert left.left_s() == before


def test_an_unknown_layer_takes_as_long_as_the_others() -> None:
    """A layer of the user's own has no known work."""
    own = [point(layer="my.layer:Layer", num_tokens=tokens) for tokens in MEASURED_S]
    left = TimeLeft(own, 2)
    left.finished(own[0], 10.0)
    left.finished(own[1], 20.0)
    assert left.left_s() == pytest.approx(2 * 15)


def test_a_race_has_as_long_as_its_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the points that are done nor the one at work change that, and when the time is up nothing is left."""
    clock = Clock()
    monkeypatch.setattr(time_left, "time", clock)
    left = Until(100.0)
    assert left.left_s() == 100
    clock.now_s = 30.0
    left.finished(POINTS[0], 30.0)
    assert (left.left_s(), left.left_s(POINTS[1], 12.0, 1)) == (70, 70)
    clock.now_s = 130.0
    assert left.left_s(POINTS[1], 99.0, 3) == 0
