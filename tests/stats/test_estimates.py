"""Weighted sums of what few processes say."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.analyse.scaling.row_estimates import log_speedups
from bench.stats.estimates import Estimates, combined, exact, half_widths, intervals
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
