"""Weighted sums of what few processes say."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.analyse.series import log_speedups
from bench.stats.estimates import (
    MEDIAN_EFFICIENCY,
    TRIMMED_EFFICIENCY,
    Estimates,
    Interval,
    combined,
    exact,
    expected_half_width,
    half_widths,
    intervals,
    joined,
    mean,
    of_ratios,
    ratio,
    ratios,
    round_differences,
    t_half_width,
)
from tests.analyse.planted import row

T_975 = {2: 4.303}
"""The 97.5 % points of Student's t by degrees of freedom, as printed in tables."""


T_975_of_replicates = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 29: 2.045}
"""The 97.5 % points of Student's t by degrees of freedom, as printed in tables."""


def samples(*processes: list[float]) -> Estimates:
    """Return the estimates of the logarithms of speed-ups, given one for each process."""
    return log_speedups([row("sdpa", [math.exp(-log) for log in logs], [1.0] * len(logs)) for logs in processes])


def test_a_difference_has_welchs_interval() -> None:
    """Of two means with unequal scatter it is what scipy's test of Welch says."""
    one, other = [0.1, 0.13, 0.09], [0.3, 0.5, 0.2, 0.35, 0.41]
    (found,) = intervals(combined(np.array([[-1.0, 1.0]]), samples(one, other)))
    expected = stats.ttest_ind(other, one, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.value == pytest.approx(np.mean(other) - np.mean(one))


def test_what_has_no_weight_has_no_say() -> None:
    """An estimate without a known scatter spoils only the sums that it is part of."""
    known, unknown = [0.1, 0.2, 0.3], [0.1]
    whole, spoilt = intervals(combined(np.array([[1.0, 0.0], [1.0, 1.0]]), samples(known, unknown)))
    assert whole.is_known
    assert not spoilt.is_known
    assert spoilt.value == pytest.approx(0.3)


def test_a_baseline_adds_no_scatter_of_its_own() -> None:
    """Its ratio to itself is 1 in each process: a difference to it has the other's interval, half of it a half."""
    logs = [0.1, 0.2, 0.3]
    whole, half = intervals(combined(np.array([[-1.0, 1.0], [-0.5, 0.5]]), samples([0.0, 0.0, 0.0], logs)))
    width = T_975[2] * 0.1 / math.sqrt(3)
    assert (whole.value, whole.high - whole.value) == pytest.approx((0.2, width), rel=1e-3)
    assert (half.value, half.high - half.value) == pytest.approx((0.1, width / 2), rel=1e-3)


def test_what_is_counted_has_no_interval() -> None:
    """Bytes are exact: differences of them are values alone; so is what no clock saw a difference in."""
    (found,) = intervals(combined(np.array([[-1.0, 1.0]]), exact([2.0, 5.0])))
    assert found.value == 3
    assert not found.is_known
    assert np.isnan(half_widths(combined(np.array([[1.0]]), samples([0.1, 0.1, 0.1])))).all()


def test_estimates_come_back_from_ratios_and_their_intervals() -> None:
    """Without an interval, as of one process, there is no error; what has no value stays unknown."""
    of = joined([mean([0.1, 0.13, 0.09]), mean([0.3]), mean([0.5, 0.7])])
    assert of.error == pytest.approx([stats.sem([0.1, 0.13, 0.09]), math.nan, stats.sem([0.5, 0.7])], nan_ok=True)
    back = of_ratios(*ratios(of), of.freedom)
    for name in ("value", "error", "freedom"):
        assert getattr(back, name) == pytest.approx(getattr(of, name), nan_ok=True)
    nothing = np.array([math.nan])
    assert np.isnan(of_ratios(np.array([0.0]), nothing, nothing, np.array([3.0])).value).all()


def test_an_interval_may_reach_to_infinity() -> None:
    """The ratio of two processes that differ wildly is unknown on one side."""
    assert Interval(0.0, -1e4, 1e4).exp() == Interval(1.0, 0.0, math.inf)


def test_ratio_is_the_geometric_mean_with_a_t_interval_on_the_logarithms() -> None:
    """Two processes at 1 and 4 have the ratio 2; 12.706 is the 97.5 % point of t with one degree of freedom."""
    found = ratio([math.log(1), math.log(4)])
    half = 12.706 * math.log(4) / 2  # sd / √2 = ln 4 / 2
    assert found.value == pytest.approx(2)
    assert found.low == pytest.approx(2 * math.exp(-half), rel=1e-3)
    assert found.high == pytest.approx(2 * math.exp(half), rel=1e-3)


def test_one_process_has_a_value_and_no_interval() -> None:
    """A ratio of one process has no bounds; a thing to itself is exactly 1."""
    estimate = ratio([math.log(3)])
    assert estimate.value == pytest.approx(3)
    assert all(math.isnan(number) for number in (estimate.low, estimate.high))
    assert ratio([0.0, 0.0, 0.0]) == Interval(1.0, 1.0, 1.0)


@pytest.mark.parametrize("processes", [2, 3, 5, 10])
def test_interval_of_a_ratio_holds_the_truth_in_95_of_100(processes: int) -> None:
    """Over normal draws the t interval keeps its level, within four standard errors of the simulation."""
    draws = np.random.default_rng(processes).normal(0, 0.01, (2000, processes))
    found = [ratio(logs) for logs in draws.tolist()]
    share = float(np.mean([one.low <= 1 <= one.high for one in found]))
    assert share == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 2000))


@pytest.mark.parametrize(("freedom", "quantile"), T_975_of_replicates.items())
def test_half_width_is_the_printed_t_times_the_standard_error(freedom: int, quantile: float) -> None:
    """The half-width over n values is t(n - 1) sd / √n; one value says nothing about the scatter."""
    count = freedom + 1
    assert t_half_width(0.7, count) == pytest.approx(quantile * 0.7 / math.sqrt(count), rel=3e-4)
    assert t_half_width(1.0, 10, confidence=0.9) == pytest.approx(1.833 / math.sqrt(10), rel=1e-3)
    assert all(math.isnan(t_half_width(0.1, few)) for few in (0, 1))


def test_round_differences_stand_in_the_order_of_the_values() -> None:
    """Each shared round gives log(baseline) - log(value)."""
    found = round_differences([1.0, 4.0, 1.0], [5, 6, 7], [2.0, 2.0], [6, 5])
    assert found == pytest.approx([math.log(2), math.log(0.5)])


def test_expected_half_width_comes_from_the_median_absolute_deviation() -> None:
    """Differences 1 to 5 deviate by 1 in the median: 1.4826 as a standard deviation, 1.0932 times for a midmean.

    A disturbed round moves nothing, one process counts as two, and two rounds are too few to stop at.
    """
    expected = T_975_of_replicates[2] * 1.0932 * 1.4826 / math.sqrt(5) / math.sqrt(3)
    for differences in ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5000]):
        assert expected_half_width(differences, processes=3) == pytest.approx(expected, rel=1e-3)
    assert expected_half_width([1, 2, 3, 4, 5], 1) == expected_half_width([1, 2, 3, 4, 5], 2)
    assert expected_half_width([0.1, 0.1], 5) == math.inf


def test_median_and_midmean_scatter_more_than_a_mean_by_the_stated_factors() -> None:
    """Over many samples of normal values, the standard errors are 1.25 and 1.09 times the mean's."""
    samples = np.random.default_rng(1).normal(0, 1, (20_000, 101))
    error = samples.mean(axis=1).std()
    assert np.median(samples, axis=1).std() / error == pytest.approx(MEDIAN_EFFICIENCY, rel=0.03)
    assert stats.trim_mean(samples, 0.25, axis=1).std() / error == pytest.approx(TRIMMED_EFFICIENCY, rel=0.02)
