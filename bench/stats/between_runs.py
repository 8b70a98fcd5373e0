"""The between-run variance component: what runs differ by beyond their processes."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import optimize, special

from bench.stats.estimates import Estimates

LEAST_CHANGES = 20
"""The fewest changes, beyond one for each group, that tell how far two occasions scatter."""

MEDIAN_SQUARE = float(special.chdtri(1, 0.5))
"""The median square of a normal deviate."""

LOST = 0.8
"""Small-sample factor of the median absolute deviation of n values: n / (n - LOST) (Croux and Rousseeuw 1992)."""

EFFICIENCY = 0.37
"""What the scale by a median is worth beside a standard deviation, as a share of its degrees of freedom."""


@dataclass(frozen=True)
class BetweenRuns:
    """The standard deviation of a log ratio between occasions, with its degrees of freedom; NaN if it isn't known."""

    sd: float
    freedom: float


UNKNOWN = BetweenRuns(math.nan, math.nan)


def of_changes(changes: Estimates, groups: Sequence[Hashable]) -> BetweenRuns:
    """Return what two occasions differ by together, from the changes between them, of which most are none.

    It is the variance that must be added to those of the changes, so that their median square is that of normal
    deviates: up to half of them may be real without being taken for scatter. A change counts from the middle one of its
    group, because a group may have changed as a whole. NaN with fewer than LEAST_CHANGES beyond one for each group.
    """
    has_error = np.isfinite(changes.value) & (changes.error > 0)
    values, variance = pd.Series(changes.value[has_error]), changes.error[has_error] ** 2
    by_group = values.groupby([group for group, is_usable in zip(groups, has_error, strict=True) if is_usable])
    size = by_group.transform("size")
    square = (((values - by_group.transform("median")) * size / (size - LOST)) ** 2).to_numpy()
    left = len(values) - by_group.ngroups
    if left < LEAST_CHANGES:
        return UNKNOWN

    def excess(component: float) -> float:
        return float(np.median(square / (variance + component))) - MEDIAN_SQUARE

    most = float(np.max(square)) / MEDIAN_SQUARE
    component = optimize.brentq(excess, 0.0, most) if excess(0.0) > 0 else 0.0
    return BetweenRuns(math.sqrt(component), EFFICIENCY * left)
