"""A sample: one implementation's part of a round."""

import math
from typing import NamedTuple

TIMINGS = ((0.003, 3), (math.inf, 1))
"""Pairs: the longest seconds per call, and the timings of a sample, of which the least counts.

A timing follows the work of other processes, which have used the caches. A call of some milliseconds and more is
slowed by this about as much as its rivals: single timings moved ratios by 2 % at most, and say more in the same time
than the least of two or three. At 6 to 18 ms their variance times their cost is 1.4 to 3 times less, at 27 to 36 ms the
same. A call of 1 ms measures the way back into the caches: there a ratio moved by 9 %."""


class Sample(NamedTuple):
    """One sample: seconds per call of each timing, context switches, page faults, other processes' share of cores."""

    timings_s: tuple[float, ...]
    switches: int
    faults: int
    others: float = 0.0


def timings(call_s: float) -> int:
    """Return the timings of a sample at a point where a call of the baseline takes so many seconds.

    All implementations have the same number: with others, eager was measured 1.5 times as fast as itself.
    """
    return next(count for longest_s, count in TIMINGS if call_s <= longest_s)
