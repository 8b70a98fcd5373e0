"""What is said about rounds and processes is what textbooks say."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.stats.replicates import (
    MEDIAN_EFFICIENCY,
    TRIMMED_EFFICIENCY,
    expected_half_width,
    round_differences,
    t_half_width,
)

T_975 = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 29: 2.045}
"""The 97.5 % points of Student's t by degrees of freedom, as printed in tables."""


@pytest.mark.parametrize(("freedom", "quantile"), T_975.items())
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
    expected = T_975[2] * 1.0932 * 1.4826 / math.sqrt(5) / math.sqrt(3)
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
