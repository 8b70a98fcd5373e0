"""Intervals that hold at once: their confidence is that of the whole table."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.stats.estimates import Estimates
from bench.stats.simultaneous import simultaneous

ROWS, TABLES = 20, 20_000


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
