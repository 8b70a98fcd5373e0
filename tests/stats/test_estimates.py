"""Weighted sums of what few processes say."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.analyse.scaling.series import log_speedups
from bench.stats.estimates import (
    Estimates,
    Interval,
    combined,
    exact,
    half_widths,
    intervals,
    joined,
    mean,
    of_ratios,
    ratio,
    ratios,
)
from tests.analyse.planted import row

T_975 = {2: 4.303}
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
