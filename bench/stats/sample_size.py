"""Moments size: how many further processes would decide what a comparison leaves open."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bench.stats.estimates import Estimates
from bench.stats.limits import INCONCLUSIVE, Limits, Truths, Verdicts, judged
from bench.stats.significance import Moments, difference

MOST_PROCESSES = 50
"""More further processes than this are not worth their time: 50 of the default sweep take more than an hour."""

Counts = npt.NDArray[np.int64]


def further_processes(base: Moments, new: Moments, limits: Limits, undecided: int) -> tuple[Counts, Verdicts]:
    """Return how many further processes on each side would decide each row, and the verdict that it would get.

    Change and scatter are taken to stay as they are, so the number suffices in about half of all cases.
    `undecided` is the number of rows that aren't shown to have changed: Holm's correction shows the next of them if its
    p-value is below the table's level over their number.
    If MOST_PROCESSES don't suffice, or nothing tells the scatter, the number is 0 and the verdict inconclusive.
    """

    def verdicts(further: Counts) -> Verdicts:
        changes = _with(base, new, further)
        return judged(changes, limits.p_changed(changes) < limits.level / max(undecided, 1), limits)

    counts = smallest(lambda further: verdicts(further) != INCONCLUSIVE, len(base.mean))
    return counts, np.where(counts > 0, verdicts(counts), INCONCLUSIVE)


def _with(base: Moments, new: Moments, further: Counts) -> Estimates:
    # a side of one process has no scatter to plan by: its standard deviation is missing and stays so
    return difference(
        Moments(base.mean, base.sd, base.count + further),
        Moments(new.mean, new.sd, new.count + further),
    )


def smallest(decides: Callable[[Counts], Truths], rows: int) -> Counts:
    """Return the smallest number from 1 to MOST_PROCESSES that decides each row, 0 if none does.

    More processes narrow the interval, so every larger number decides too, and bisection finds the smallest.
    """
    low, high = np.zeros(rows, dtype=np.int64), np.full(rows, MOST_PROCESSES, dtype=np.int64)
    possible = decides(high)
    while bool((high - low > 1).any()):
        middle = (low + high) // 2
        enough = decides(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(possible, high, 0)
