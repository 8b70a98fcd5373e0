"""Sample size: the number of further processes that would decide the open rows of a comparison."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bench.stats.estimates import Estimates
from bench.stats.limits import INCONCLUSIVE, Limits, Truths, Verdicts, judged
from bench.stats.significance import Moments, difference

MOST_PROCESSES = 50
"""More further processes than this are not worth their time: 50 of the default sweep take more than an hour."""

Counts = npt.NDArray[np.int64]


def further_processes(
    base: Moments, new: Moments, limits: Limits, undecided: int, between: Estimates | None = None
) -> tuple[Counts, Verdicts]:
    """Return how many further processes on each side would decide each row, and the verdict that it would get.

    Change and scatter are assumed to stay as they are, so the number suffices in about half of all cases.
    More processes don't change what occasions differ by, which is `between`.
    `undecided` is the number of rows that aren't shown to have changed: Holm's correction shows the next of them if its
    p-value is below the table's level over their number.
    If MOST_PROCESSES don't suffice, or the scatter is unknown, the number is 0 and the verdict inconclusive.
    """

    def verdicts(further: Counts) -> Verdicts:
        # the standard deviation of a side of one process is missing, and stays so
        more_base, more_new = (Moments(side.mean, side.sd, side.count + further) for side in (base, new))
        changes = difference(more_base, more_new, between)
        return judged(changes, limits.p_changed(changes) < limits.level / max(undecided, 1), limits)

    counts = smallest(lambda further: verdicts(further) != INCONCLUSIVE, len(base.mean))
    return counts, np.where(counts > 0, verdicts(counts), INCONCLUSIVE)


def smallest(decides: Callable[[Counts], Truths], rows: int) -> Counts:
    """Return the smallest number from 1 to MOST_PROCESSES that decides each row, 0 if none does.

    It is found by bisection: more processes narrow the interval, so every larger number decides too.
    """
    low, high = np.zeros(rows, dtype=np.int64), np.full(rows, MOST_PROCESSES, dtype=np.int64)
    possible = decides(high)
    while bool((high - low > 1).any()):
        middle = (low + high) // 2
        enough = decides(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(possible, high, 0)
