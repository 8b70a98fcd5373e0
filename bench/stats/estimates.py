"""Estimates over rounds and processes, their differences, and their confidence intervals."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Array = npt.NDArray[np.float64]

CONFIDENCE = 0.99
"""The confidence level of every interval and every bound."""

MOST_FACTOR = 3.0
"""An interval that reaches beyond this factor of its value says nothing, and is left out."""

MEDIAN_EFFICIENCY = math.sqrt(math.pi / 2)
"""The ratio of the standard errors of a median and a mean, for a normal distribution."""

TRIMMED = 0.25
"""The share of the rounds that is trimmed at each end: the mean of the middle half is the midmean (Tukey 1977).

In eight runs of up to 12 points it varied between processes by up to 11 % less than the median, and by at most 1 %
more. Disturbances in less than a quarter of the rounds hardly move it."""


@dataclass(frozen=True)
class Interval:
    """A value and the ends of its interval, NaN if it has none."""

    value: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def exp(self) -> "Interval":
        """Return the interval of a ratio from the interval of its logarithm; an end may be infinite."""
        with np.errstate(over="ignore"):
            return Interval(*np.exp([self.value, self.low, self.high]).tolist())


UNKNOWN = Interval(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Estimates:
    """Values with standard errors and degrees of freedom; these are NaN if no scatter is known."""

    value: Array
    error: Array
    freedom: Array


def joined(single: Iterable[Estimates]) -> Estimates:
    """Return single estimates as one, with an array for each field."""
    parts = np.array([(each.value, each.error, each.freedom) for each in single], dtype=np.float64)
    return Estimates(*parts.reshape(-1, 3).T)


def mean(values: Sequence[float]) -> Estimates:
    """Return the mean of independent values with its standard error; NaN for a single value."""
    count = len(values)
    error, freedom = (np.std(values, ddof=1) / math.sqrt(count), count - 1.0) if count > 1 else (math.nan, math.nan)
    return Estimates(*map(np.asarray, (np.mean(values), error, freedom)))


def of_ratios(value: Array, low: Array, high: Array, freedom: Array) -> Estimates:
    """Return the logarithms of ratios with intervals as estimates; the error is NaN without an interval."""
    with np.errstate(divide="ignore", invalid="ignore"):  # missing values become NaN
        error = (np.log(high) - np.log(low)) / 2 / t_quantile(freedom)
        return Estimates(np.log(np.where(value > 0, value, np.nan)), error, np.asarray(freedom))


def differences(after: Estimates, before: Estimates) -> Estimates:
    """Return the differences of independent estimates, with Satterthwaite's degrees of freedom (1946).

    The error is NaN if one of the two has none.
    """
    parts = after.error**2, before.error**2
    freedom = (parts[0] + parts[1]) ** 2 / (parts[0] ** 2 / after.freedom + parts[1] ** 2 / before.freedom)
    return Estimates(after.value - before.value, np.sqrt(parts[0] + parts[1]), freedom)


def t_quantile(freedom: Array | float) -> Array:
    """Return the half-width in standard errors of t intervals; NaN if the degrees of freedom are NaN."""
    return np.asarray(special.stdtrit(freedom, 0.5 + CONFIDENCE / 2))


def half_widths(of: Estimates) -> Array:
    """Return the half-width of the t interval of each estimate."""
    return t_quantile(of.freedom) * of.error


def interval(of: Estimates) -> Interval:
    """Return the t interval of a single estimate."""
    half = half_widths(of)
    return Interval(*map(float, (of.value, of.value - half, of.value + half)))


def simultaneous(of: Estimates) -> list[Interval]:
    """Return t intervals that, with CONFIDENCE, all contain their true values (Bonferroni).

    Each of k has the level `1 - (1 - CONFIDENCE) / k`. An estimate without an error has no interval and isn't counted.
    """
    count = max(1, int(np.sum(~np.isnan(of.error))))
    half = special.stdtrit(of.freedom, 1 - (1 - CONFIDENCE) / 2 / count) * of.error
    return [Interval(*ends) for ends in np.stack([of.value, of.value - half, of.value + half], axis=-1).tolist()]
