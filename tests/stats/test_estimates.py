"""Estimates, their intervals, and weighted sums of them, held against scipy, printed tables and simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.stats.estimates import (
    MEDIAN_EFFICIENCY,
    Estimates,
    Interval,
    combined,
    exact,
    half_widths,
    interval,
    intervals,
    joined,
    mean,
    of_ratios,
    ratios,
)

T_995 = {1: 63.657, 2: 9.925, 4: 4.604, 9: 3.250, 30: 2.750}
"""The 99.5 % points of Student's t by degrees of freedom, as printed in tables."""


def means(*processes: list[float]) -> Estimates:
    """Return the estimates of several means, given a value for each process."""
    return joined(map(mean, processes))


def test_a_difference_has_welchs_interval() -> None:
    """Of two means with unequal scatter it is what scipy's test of Welch says."""
    one, other = [0.1, 0.13, 0.09], [0.3, 0.5, 0.2, 0.35, 0.41]
    (change,) = intervals(combined(np.array([[-1.0, 1.0]]), means(one, other)))
    expected = stats.ttest_ind(other, one, equal_var=False).confidence_interval(0.99)
    assert (change.low, change.high) == pytest.approx((expected.low, expected.high))
    assert change.value == pytest.approx(np.mean(other) - np.mean(one))


def test_an_estimate_with_weight_0_does_not_count() -> None:
    """An estimate without an error spoils only the sums that it is part of."""
    whole, spoilt = intervals(combined(np.array([[1.0, 0.0], [1.0, 1.0]]), means([0.1, 0.2, 0.3], [0.1])))
    assert (whole.is_known, spoilt.is_known) == (True, False)
    assert spoilt.value == pytest.approx(0.3)


def test_a_baseline_adds_no_scatter_of_its_own() -> None:
    """The baseline's ratio to itself is 1 in each process.

    A difference to it has the other's interval, and half of the difference has half of it.
    """
    logs = means([0.0, 0.0, 0.0], [0.1, 0.2, 0.3])
    whole, half = intervals(combined(np.array([[-1.0, 1.0], [-0.5, 0.5]]), logs))
    width = T_995[2] * 0.1 / math.sqrt(3)
    assert (whole.value, whole.high - whole.value) == pytest.approx((0.2, width), rel=1e-3)
    assert (half.value, half.high - half.value) == pytest.approx((0.1, width / 2), rel=1e-3)


def test_counted_numbers_and_equal_values_have_no_interval() -> None:
    """Bytes are exact, so a difference of them is a value alone; so is a sum of values that don't scatter."""
    change = interval(combined(np.array([-1.0, 1.0]), exact([2.0, 5.0])))
    assert (change.value, change.is_known) == (3, False)
    assert np.isnan(half_widths(combined(np.array([[1.0]]), means([0.0, 0.0, 0.0])))).all()


def test_estimates_come_back_from_ratios_and_their_intervals() -> None:
    """Without an interval, as of one process, there is no error; without a value nothing is known."""
    of = means([0.1, 0.13, 0.09], [0.3], [0.5, 0.7])
    assert of.error == pytest.approx([stats.sem([0.1, 0.13, 0.09]), math.nan, stats.sem([0.5, 0.7])], nan_ok=True)
    back = of_ratios(*ratios(of), of.freedom)
    for name in ("value", "error", "freedom"):
        assert getattr(back, name) == pytest.approx(getattr(of, name), nan_ok=True)
    nothing = np.array([math.nan])
    assert np.isnan(of_ratios(np.array([0.0]), nothing, nothing, np.array([3.0])).value).all()


def test_a_ratio_has_a_t_interval_on_its_logarithm() -> None:
    """Processes at 1 and 4 have the ratio 2; one has no interval, a thing to itself is 1, an end may be infinite."""
    ratio = interval(mean([math.log(1), math.log(4)])).exp()
    half = T_995[1] * math.log(4) / 2  # sd / √2 = ln 4 / 2
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((2, 2 * math.exp(-half), 2 * math.exp(half)), rel=1e-3)
    alone = interval(mean([math.log(3)])).exp()
    assert alone.value == pytest.approx(3)
    assert not alone.is_known
    assert interval(mean([0.0, 0.0, 0.0])).exp() == Interval(1.0, 1.0, 1.0)
    assert Interval(0.0, -1e4, 1e4).exp() == Interval(1.0, 0.0, math.inf)


@pytest.mark.parametrize("processes", [2, 3, 5, 10])
def test_interval_of_a_mean_holds_the_truth_in_99_of_100(processes: int) -> None:
    """Over normal draws the t interval keeps its level, within four standard errors of the simulation."""
    draws = np.random.default_rng(processes).normal(0, 0.01, (2000, processes))
    half = half_widths(means(*draws.tolist()))
    assert np.mean(np.abs(draws.mean(axis=1)) < half) == pytest.approx(0.99, abs=4 * math.sqrt(0.99 * 0.01 / 2000))


def test_half_width_is_the_printed_t_times_the_standard_error() -> None:
    """Of several degrees of freedom."""
    freedom = np.array([*T_995], dtype=np.float64)
    half = half_widths(Estimates(np.zeros(len(freedom)), np.full(len(freedom), 0.7), freedom))
    assert half == pytest.approx([0.7 * quantile for quantile in T_995.values()], rel=3e-4)


def test_a_median_scatters_more_than_a_mean_by_the_stated_factor() -> None:
    """Over many samples of normal values the standard error is 1.25 times the mean's."""
    samples = np.random.default_rng(1).normal(0, 1, (10_000, 101))
    assert np.median(samples, axis=1).std() / samples.mean(axis=1).std() == pytest.approx(MEDIAN_EFFICIENCY, rel=0.03)
