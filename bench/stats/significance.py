"""Tests of the difference of two means: Welch's interval, tests against a margin, and tests of several at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from bench.stats.estimates import Estimates, combined
from bench.stats.replicates import Array

SMALLEST_SCATTER = 1e-9
"""A smaller standard deviation counts as unknown: a sample of 1 ms on a clock of 1 ns can't resolve it."""

TRUNCATION = 0.05
"""The p-values up to this are multiplied by `p_of_all`: those of 95 % intervals that exclude the hypothesis."""


@dataclass(frozen=True)
class Moments:
    """The mean, standard deviation and number of some values, per row; NaN if a row has none."""

    mean: Array
    sd: Array
    count: Array


def difference(base: Moments, new: Moments, between: Estimates | None = None) -> Estimates:
    """Return new - base with Welch's standard error and degrees of freedom (Welch 1947).

    `between` has the error that both sides have together because they were measured on different occasions.
    The error is NaN if a side has fewer than two values, or if nothing scatters, as real measurements do.
    """
    mean, sd, count = (
        np.stack(np.broadcast_arrays(*sides), axis=-1)  # [..., 2]
        for sides in ((base.mean, new.mean), (base.sd, new.sd), (base.count, new.count))
    )
    count = np.where(count >= 2, count, np.nan)
    sides = Estimates(mean, sd / np.sqrt(count), count - 1)
    if between is None:
        return combined(np.array([-1.0, 1.0]), sides)
    error, freedom = (np.broadcast_to(value, mean.shape[:-1])[..., None] for value in (between.error, between.freedom))
    whole = (
        np.concatenate(parts, axis=-1)
        for parts in ((sides.value, np.zeros_like(error)), (sides.error, error), (sides.freedom, freedom))
    )
    return combined(np.array([-1.0, 1.0, 1.0]), Estimates(*whole))


def means(values: Sequence[Sequence[float]]) -> Estimates:
    """Return the mean of each row of values with its standard error, NaN without values or without scatter."""
    counts = np.array([max(len(own), 1) for own in values], dtype=np.float64)
    mean = np.array([float(np.mean(own)) if own else math.nan for own in values])
    sds = np.array([float(np.std(own, ddof=1)) if len(own) > 1 else math.nan for own in values])
    sds = np.where(sds > SMALLEST_SCATTER, sds, math.nan)
    return Estimates(mean, sds / np.sqrt(counts), counts - 1)


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


def p_of_all(p_values: Array) -> float:
    """Return the p-value of "all hypotheses are true", given independent p-values of each; NaN is no test.

    It is 1 if no p-value is at most TRUNCATION, or if there is no test.
    Two tests share the level (Bonferroni). The smallest p-value, times their number, finds one large effect.
    The product of those up to TRUNCATION (Zaykin et al. 2002) finds several small ones.
    `tests/stats/test_significance.py` simulates both: with twelve tests of three values each, the first finds a single
    effect twice as often as the second, and the second an effect in all of them three times as often as the first.
    """
    known = p_values[~np.isnan(p_values)]
    small = known[known <= TRUNCATION]
    if not small.size:
        return 1.0
    numbers = np.arange(1, known.size + 1)  # of p-values up to TRUNCATION
    beyond = stats.gamma.sf(numbers * math.log(TRUNCATION) - np.sum(np.log(small)), numbers)
    p_of_product = float(np.sum(stats.binom.pmf(numbers, known.size, TRUNCATION) * beyond))
    return min(1.0, 2 * min(known.size * float(small.min()), p_of_product))
