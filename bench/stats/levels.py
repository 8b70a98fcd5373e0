"""The common level of a point's implementations, by which two runs of the point are compared.

A race measures the baseline in few processes, and then all changes of speed-ups are as vague as it is. Rows that were
measured well tell the level better. It is robust: a row that moved away from the others doesn't carry it away.
"""

import math

import numpy as np

from bench.stats.estimates import Array, Estimates, combined, joined
from bench.stats.limits import LEVEL, Truths, p_beyond

UNLIKE = 0.01
"""By how much the ratio of two unlike kernels moves from run to run, at least: no row has a larger part in the level
than one with this error."""

FAR = 2.5
"""A row that lies so many standard deviations from the middle one has no part in the level."""

FEWEST = 3
"""The fewest rows of a level, the baseline among them: of two nobody can tell which one changed."""

MOVED = math.log(1.02)
"""If the baseline moved by more against the level, all others may have changed together, and it is the level alone."""


def relative(changes: Estimates, members: Truths, baseline: int) -> Estimates | None:
    """Return the change of each row of a point relative to the common level of the other `members`.

    Errors are those of rows by themselves, NaN if unknown. `baseline` is the place of the baseline, which belongs to
    the level if it has an error. None if there are too few members, or if the baseline moved against the others.
    """
    inside = members & (changes.error > 0)
    inside[baseline] = changes.error[baseline] > 0
    if inside.sum() < FEWEST:
        return None
    scale = np.sqrt(np.where(changes.error > 0, changes.error, 0.0) ** 2 + UNLIKE**2)
    near = np.abs(changes.value - _weighted_median(changes.value[inside], scale[inside] ** -2)) <= FAR * scale
    weights = np.where(inside & near, scale**-2, 0.0)
    if np.count_nonzero(np.delete(weights, baseline)) < FEWEST - 1:
        return None
    moved = _beside(changes, weights, baseline)
    if moved.error > 0 and p_beyond(moved, MOVED) < LEVEL:
        return None
    return joined(_beside(changes, weights, row) for row in range(len(weights)))


def _beside(changes: Estimates, weights: Array, row: int) -> Estimates:
    """Return the change of a row relative to the mean of the others."""
    sums = np.where(np.arange(len(weights)) == row, 0.0, -weights)
    sums = np.where(np.arange(len(weights)) == row, 1.0, sums / -sums.sum())
    used = sums != 0
    return combined(sums[used], Estimates(*(part[used] for part in (changes.value, changes.error, changes.freedom))))


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values, kind="stable")
    return float(values[order][np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)])
