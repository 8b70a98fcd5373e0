"""How sure a difference of two means is: Welch's interval, tests against a margin, Holm's correction."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from bench.analyse.statistics import CONFIDENCE

Array = npt.NDArray[np.float64]
"""One value per row of a table; NaN where a row has none."""


@dataclass(frozen=True)
class Sample:
    """The mean, standard deviation and number of some values, per row."""

    mean: Array
    sd: Array
    count: Array


@dataclass(frozen=True)
class Difference:
    """The difference of two means with its standard error and degrees of freedom, per row.

    The latter two are NaN where nothing is known about the scatter.
    """

    value: Array
    standard_error: Array
    freedom: Array


def difference(base: Sample, new: Sample) -> Difference:
    """Return new - base with Welch's standard error and degrees of freedom (Welch 1947).

    Fewer than two values on a side tell no scatter. Nor do two sides without any: real measurements always
    scatter, so there the clock is too coarse or the numbers are no measurements.
    """
    base_part, new_part = _variance_of_mean(base), _variance_of_mean(new)
    total = base_part + new_part
    variance = np.where(total > 0, total, np.nan)
    inverse = _inverse_freedom(base, base_part / variance) + _inverse_freedom(new, new_part / variance)
    return Difference(new.mean - base.mean, np.sqrt(variance), 1 / inverse)


def half_width(of: Difference, confidence: float = CONFIDENCE) -> Array:
    """Return the half-width of the t interval of a difference."""
    return np.asarray(special.stdtrit(of.freedom, 0.5 + confidence / 2) * of.standard_error)


def p_beyond(of: Difference, margin: float) -> Array:
    """Return the p-value of "the true difference is no larger than the margin, in either direction".

    Both tails are counted, from the edge of the margin on the side of the difference, so that the test keeps its
    level at a margin of 0 too; with a margin of many standard errors it is the one-sided test.
    """
    size = np.abs(of.value)
    near = special.stdtr(of.freedom, -(size - margin) / of.standard_error)
    far = special.stdtr(of.freedom, -(size + margin) / of.standard_error)
    return np.asarray(near + far)


def p_within(of: Difference, margin: float) -> Array:
    """Return the p-value of "the true difference is at least the margin", the larger of two one-sided tests."""
    return np.asarray(special.stdtr(of.freedom, (np.abs(of.value) - margin) / of.standard_error))


def holm(p_values: Array) -> Array:
    """Return the p-values adjusted for all of them together (Holm 1979); NaN is no test and stays NaN."""
    count = int(np.sum(~np.isnan(p_values)))
    order = np.argsort(p_values, kind="stable")[:count]  # NaN sorts to the end
    factors = count - np.arange(count)
    adjusted = np.full_like(p_values, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1)
    return adjusted


def _variance_of_mean(sample: Sample) -> Array:
    return np.asarray(sample.sd**2 / _enough(sample.count))


def _inverse_freedom(sample: Sample, share: Array) -> Array:
    return np.asarray(share**2 / (_enough(sample.count) - 1))


def _enough(count: Array) -> Array:
    return np.where(count >= 2, count, np.nan)
