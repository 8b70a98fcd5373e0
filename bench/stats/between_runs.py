"""The between-run variance component: what runs differ by beyond their processes."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from bench.stats.estimates import Estimates

LEAST_CHANGES = 20
"""The fewest changes, beyond one for each group, that tell how far two occasions scatter."""

MEDIAN_SQUARE = float(special.chdtri(1, 0.5))
"""The median square of a normal deviate."""

LOST = 0.8
"""Deviations from the median of n values are too small by n / (n - 0.8) in their middle (Croux and Rousseeuw 1992)."""

EFFICIENCY = 0.37
"""What the scale by a median is worth beside a standard deviation, as a share of its degrees of freedom."""


@dataclass(frozen=True)
class BetweenRuns:
    """The standard deviation of a log ratio between occasions, with its degrees of freedom; NaN if it isn't known."""

    sd: float
    freedom: float


def of_occasions(rows: Sequence[Sequence[Sequence[float]]]) -> BetweenRuns:
    """Return what occasions differ by, from rows of occasions of log ratios, one of each process.

    It is the variance component of a nested design by the method of moments, pooled over rows, with Satterthwaite's
    degrees of freedom (Searle, Casella and McCulloch, Variance components, 1992). A negative component is 0.
    Rows with fewer than two occasions of at least two processes tell nothing.
    """
    squares, freedoms, sizes = np.zeros(2), np.zeros(2), []
    for occasions in rows:
        size = min(map(len, occasions), default=0)
        if len(occasions) < 2 or size < 2:
            continue
        values = np.array([list(occasion[:size]) for occasion in occasions])
        means = values.mean(axis=1)
        squares += size * np.sum((means - means.mean()) ** 2), np.sum((values - means[:, None]) ** 2)
        freedoms += len(occasions) - 1, len(occasions) * (size - 1)
        sizes.append(size)
    if not sizes:
        return BetweenRuns(math.nan, math.nan)
    between_ms, within_ms = squares / freedoms
    excess = between_ms - within_ms
    if excess <= 0:
        return BetweenRuns(0.0, float(freedoms[0]))
    freedom = excess**2 / (between_ms**2 / freedoms[0] + within_ms**2 / freedoms[1])
    return BetweenRuns(math.sqrt(excess / float(np.mean(sizes))), float(freedom))


def of_changes(changes: Estimates, groups: Sequence[Hashable]) -> BetweenRuns:
    """Return what two occasions differ by together, from the changes between them, of which most are none.

    It is the variance that must be added to those of the changes, so that their median square is that of normal
    deviates: up to half of them may be real without being taken for scatter. A change counts from the middle one of its
    group, because a group may have changed as a whole. NaN with fewer than LEAST_CHANGES beyond one for each group.
    """
    has_error = np.isfinite(changes.value) & (changes.error > 0)
    squares, variances = [], []
    by_group: dict[Hashable, list[int]] = {}
    for at in np.flatnonzero(has_error).tolist():
        by_group.setdefault(groups[at], []).append(at)
    for members in by_group.values():
        value, error = changes.value[members], changes.error[members]
        size = len(members)
        squares.append(((value - np.median(value)) * size / (size - LOST)) ** 2)
        variances.append(error**2)
    left = int(has_error.sum()) - len(by_group)
    if left < LEAST_CHANGES:
        return BetweenRuns(math.nan, math.nan)
    square, variance = np.concatenate(squares), np.concatenate(variances)

    def excess(component: float) -> float:
        return float(np.median(square / (variance + component))) - MEDIAN_SQUARE

    most = float(np.max(square)) / MEDIAN_SQUARE
    component = optimize.brentq(excess, 0.0, most) if excess(0.0) > 0 else 0.0
    return BetweenRuns(math.sqrt(component), EFFICIENCY * left)
