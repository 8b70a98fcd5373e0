"""Estimates, their intervals and differences, held against scipy, printed tables and simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.stats.estimates import (
    MEDIAN_EFFICIENCY,
    Estimates,
    Interval,
    differences,
    half_widths,
    interval,
    joined,
    mean,
    of_ratios,
    simultaneous,
)

T_995 = {1: 63.657, 2: 9.925, 4: 4.604, 9: 3.250, 30: 2.750}
"""The 99.5 % points of Student's t by degrees of freedom, as printed in tables."""

ROWS, TABLES = 20, 20_000


def means(*processes: list[float]) -> Estimates:
    """Return the estimates of several means, given a value for each process."""
    return joined(map(mean, processes))


def test_a_difference_has_welchs_interval() -> None:
    """Of two means with unequal scatter it is what scipy's test of Welch says."""
    one, other = [0.1, 0.13, 0.09], [0.3, 0.5, 0.2, 0.35, 0.41]
    change = interval(differences(mean(other), mean(one)))
    expected = stats.ttest_ind(other, one, equal_var=False).confidence_interval(0.99)
    assert (change.low, change.high) == pytest.approx((expected.low, expected.high))
    assert change.value == pytest.approx(np.mean(other) - np.mean(one))
    assert not interval(differences(mean(other), mean([0.1]))).is_known


def test_estimates_come_back_from_ratios_and_their_intervals() -> None:
    """Without an interval, as with one process, there is no error; without a value everything is unknown."""
    of = means([0.1, 0.13, 0.09], [0.3], [0.5, 0.7])
    assert of.error == pytest.approx([stats.sem([0.1, 0.13, 0.09]), math.nan, stats.sem([0.5, 0.7])], nan_ok=True)
    half = half_widths(of)
    back = of_ratios(np.exp(of.value), np.exp(of.value - half), np.exp(of.value + half), of.freedom)
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


def test_one_estimate_has_its_usual_interval_and_several_have_wider_ones() -> None:
    """Of k estimates each has the t interval of level 1 - 0.01 / k; one without an error isn't counted."""
    for count in (1, 4):
        values = np.array([1.0] * count + [2.0])
        error, freedom = (np.array([of] * count + [math.nan]) for of in (0.1, 7.0))
        *known, unknown = simultaneous(Estimates(values, error, freedom))
        half = 0.1 * stats.t.ppf(1 - 0.005 / count, 7)
        assert [(of.low, of.high) for of in known] == [pytest.approx((1 - half, 1 + half))] * count
        assert (unknown.value, unknown.is_known) == (2.0, False)


def test_all_rows_of_a_table_hold_their_values_at_once() -> None:
    """In 99 of 100 tables no interval misses, for rows of few degrees of freedom too; each alone misses in 1 of 5."""
    rng = np.random.default_rng(5)
    freedom = np.resize([2.0, 4.0, 30.0], ROWS)
    draws = rng.normal(size=(TABLES, ROWS)) / np.sqrt(rng.chisquare(freedom, (TABLES, ROWS)) / freedom)
    half = np.array([of.high for of in simultaneous(Estimates(np.zeros(ROWS), np.ones(ROWS), freedom))])
    missed = np.abs(draws) > half
    assert missed.any(axis=1).mean() == pytest.approx(0.01, abs=0.003)
    alone = stats.t.ppf(0.995, freedom)
    assert (np.abs(draws) > alone).any(axis=1).mean() > 0.15
