"""The bounds of a slowdown by hand with Student's t, and how much more data a half-width needs."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.stats.best import bounds, ends, growth
from bench.stats.contrasts import Contrasts


def of(*logs: float, error: float = 0.01, freedom: float = 12.0) -> Contrasts:
    """Return the contrasts of implementations with these log times, each pair with the same error."""
    difference = np.subtract.outer(np.array(logs), np.array(logs))
    others = ~np.eye(len(logs), dtype=bool)
    return Contrasts(tuple("abcdef"[: len(logs)]), difference, error * others, np.full(difference.shape, freedom))


def test_bounds_of_two_are_the_ends_of_the_interval_of_their_ratio() -> None:
    """The interval has 99 %; no bound is below 1, and only a slower one has a lower bound above 1."""
    half = stats.t.ppf(0.995, 12) * 0.01
    slowdown = bounds(of(0.0, 0.1))
    assert slowdown.value.tolist() == pytest.approx([1, math.exp(0.1)])
    assert slowdown.high.tolist() == pytest.approx([1, math.exp(0.1 + half)])
    assert slowdown.low.tolist() == pytest.approx([1, math.exp(0.1 - half)])
    slowdown = bounds(of(0.0, 0.015))
    assert slowdown.high.tolist() == pytest.approx([math.exp(half - 0.015), math.exp(0.015 + half)])
    assert slowdown.low.tolist() == [1, 1]


@pytest.mark.parametrize("rivals", [1, 4])
def test_a_row_is_slower_if_the_intervals_of_its_ratios_say_so(rivals: int) -> None:
    """Of any number of rivals each pair has the same level."""
    for level, is_slower in ((0.994, False), (0.996, True)):
        far = stats.t.ppf(level, 12) * 0.01
        assert (bounds(of(far, *[0.0] * rivals)).low > 1).tolist() == [is_slower] + [False] * rivals


def test_what_is_slower_than_any_other_is_slower_than_the_fastest() -> None:
    """A third that may be the fastest is hardly known, and that changes nothing."""
    errors = np.array([[0, 0.001, 0.1], [0.001, 0, 0.1], [0.1, 0.1, 0]])
    plain = Contrasts(tuple("abc"), of(0.05, 0.0, 0.01).difference, errors, np.full((3, 3), 12.0))
    half = stats.t.ppf(0.995, 12) * 0.001
    assert bounds(plain).low.tolist() == pytest.approx([math.exp(0.05 - half), 1, 1])


def test_a_value_lies_between_its_bounds() -> None:
    """It holds for any number of implementations and any errors; bounds of possibly fastest ones begin at 1."""
    rng = np.random.default_rng(1)
    for count in (2, 3, 6):
        slowdown = bounds(of(*rng.normal(0, 0.03, count)))
        assert (slowdown.low <= slowdown.value).all()
        assert (slowdown.value <= slowdown.high).all()
        assert slowdown.low[np.argmin(slowdown.value)] == 1
        assert slowdown.value.min() == 1


def test_without_errors_there_are_values_alone() -> None:
    """A single process rules out nothing, so all bounds are unknown."""
    slowdown = bounds(of(0.0, 0.5, error=math.nan))
    assert slowdown.value.tolist() == pytest.approx([1, math.exp(0.5)])
    assert np.isnan([slowdown.low, slowdown.high]).all()


def test_a_bound_of_more_than_three_times_the_value_is_unknown() -> None:
    """One open pair doesn't affect rows that other pairs bound, so a slow one keeps its lower bound."""
    slowdown = bounds(of(0.0, 3.0, error=0.5))
    assert np.isnan(slowdown.high).tolist() == [False, True]
    assert slowdown.low[1] == pytest.approx(math.exp(3.0 - stats.t.ppf(0.995, 12) * 0.5))
    assert np.isnan(bounds(of(0.0, 0.0, error=0.5)).high).all()


@pytest.mark.parametrize("rivals", [1, 3])
def test_an_end_is_how_much_faster_another_may_be(rivals: int) -> None:
    """An end belongs to the pair's interval; the largest end of a row is its upper bound."""
    logs = [0.0, 0.01, 0.02, 0.05][: rivals + 1]
    most, half = ends(of(*logs)), stats.t.ppf(0.995, 12) * 0.01
    for row, column in zip(*np.nonzero(~np.eye(rivals + 1, dtype=bool)), strict=True):
        assert most[row, column] == pytest.approx(logs[row] - logs[column] + half)
    np.fill_diagonal(most, 0.0)
    assert np.exp(most.max(axis=1)) == pytest.approx(bounds(of(*logs)).high)


@pytest.mark.parametrize("freedom", [None, 1.0, 4.0, 1e6])
def test_so_many_times_more_measuring_brings_a_half_width_to_its_goal(freedom: float | None) -> None:
    """Degrees of freedom grow with the data if they are given; a goal that is not above 0 is not to be expected."""
    for half in (0.012, 0.02, 0.05):
        times = 1 + float(growth(half, 0.01, freedom))
        shrinks = 1.0 if freedom is None else stats.t.ppf(0.995, freedom * times) / stats.t.ppf(0.995, freedom)
        assert half * shrinks / math.sqrt(times) == pytest.approx(0.01, rel=1e-3)
    assert np.isnan(growth(0.02, np.array([0.0, -0.1]), freedom)).all()
