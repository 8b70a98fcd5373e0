"""The limits and the tests of verdicts: which changes count, which rows are equivalent, and the levels."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from bench.plan.errors import WrongRequest
from bench.plan.verdicts import EQUIVALENT, FASTER, MARGIN, OPEN, SLOWER
from bench.stats.estimates import Array, Estimates

EQUIVALENCE = 0.02
"""Rows within 2 % count as equivalent: twice the margin, so that 5 to 10 processes can show it."""

LEVEL = 0.01
"""The chance of any false faster or slower in a whole table: a check that runs daily errs once in 100 tables."""

EQUIVALENCE_LEVEL = 0.05
"""The usual level of each of the two one-sided tests: a 90 % interval lies inside the bounds.

It is that of a row, not of the table: a wrong "equivalent" hides one change and raises no alarm.
"""

Truths = npt.NDArray[np.bool_]
Verdicts = npt.NDArray[np.str_]


@dataclass(frozen=True)
class Limits:
    """The margin above which a change counts, the bounds of equivalence, and the level of the whole table.

    Raises WrongRequest for impossible values.
    """

    margin: float = MARGIN
    equivalence: float = EQUIVALENCE
    level: float = LEVEL

    def __post_init__(self) -> None:
        if not 0 <= self.margin < math.inf:
            raise WrongRequest(f"margin = {self.margin} must be a number of at least 0, such as {MARGIN} for 1 %")
        if not 0 < self.equivalence < math.inf:
            raise WrongRequest(
                f"equivalence = {self.equivalence} must be a number above 0, such as {EQUIVALENCE} for 2 %"
            )
        if not 0 < self.level < 1:
            raise WrongRequest(f"level = {self.level} must lie between 0 and 1, such as {LEVEL}")

    @property
    def bound(self) -> float:
        """The largest change of equivalent rows: at least the margin, so that every change can get a verdict."""
        return max(self.equivalence, self.margin)

    def p_changed(self, changes: Estimates) -> Array:
        """Return the p-value of "the ratio changed by no more than the margin"."""
        return p_beyond(changes, math.log1p(self.margin))


def judged(changes: Estimates, changed: Truths, limits: Limits) -> Verdicts:
    """Return the verdict of each change, given whether it is shown to exceed the margin."""
    return first_that_holds(
        {
            FASTER: changed & (changes.value > 0),
            SLOWER: changed & (changes.value < 0),
            EQUIVALENT: p_within(changes, math.log1p(limits.bound)) < EQUIVALENCE_LEVEL,
        },
        OPEN,
    )


def first_that_holds(conditions: dict[str, Truths], default: str) -> Verdicts:
    """Return for each row the name of the first condition that holds."""
    return np.select(list(conditions.values()), [np.array(name) for name in conditions], default=np.array(default))


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
