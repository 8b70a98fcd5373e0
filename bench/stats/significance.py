"""Tests of differences: against a margin, and of several at once."""

import numpy as np
from scipy import special

from bench.stats.estimates import Estimates
from bench.stats.replicates import Array


def p_beyond(of: Estimates, margin: float) -> Array:
    """Return the p-value of "the true difference is no larger than the margin, in either direction".

    It counts both tails from the edge of the margin, so that the test keeps its level at a margin of 0 too; with a
    margin of many standard errors it is the one-sided test.
    """
    size = np.abs(of.value)
    near = special.stdtr(of.freedom, -(size - margin) / of.error)
    far = special.stdtr(of.freedom, -(size + margin) / of.error)
    return np.asarray(near + far)


def p_within(of: Estimates, margin: float) -> Array:
    """Return the p-value of "the true difference is at least the margin", the larger of two one-sided tests."""
    return np.asarray(special.stdtr(of.freedom, (np.abs(of.value) - margin) / of.error))


def holm(p_values: Array) -> Array:
    """Return the p-values adjusted for their number (Holm 1979); NaN is no test and stays NaN."""
    count = int(np.sum(~np.isnan(p_values)))
    order = np.argsort(p_values, kind="stable")[:count]  # NaN sorts to the end
    factors = count - np.arange(count)
    adjusted = np.full_like(p_values, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1)
    return adjusted
