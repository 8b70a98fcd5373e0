"""Estimates and their intervals, held against printed tables and simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.stats.estimates import (
    MEDIAN_EFFICIENCY,
    Estimates,
    Interval,
    half_widths,
    interval,
    joined,
    mean,
    simultaneous,
)

T_995 = {1: 63.657}
"""The 99.5 % point of Student's t by degrees of freedom, as printed in tables."""

ROWS, TABLES = 20, 20_000


def means(*processes: list[float]) -> Estimates:
    """Return the estimates of several means, given a value for each process."""
    return joined(map(mean, processes))


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


def test_a_median_scatters_more_than_a_mean_by_the_stated_factor() -> None:
    """Over many samples of normal values the standard error is 1.25 times the mean's."""
    samples = np.random.default_rng(1).normal(0, 1, (10_000, 101))
    assert np.median(samples, axis=1).std() / samples.mean(axis=1).std() == pytest.approx(MEDIAN_EFFICIENCY, rel=0.03)


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
