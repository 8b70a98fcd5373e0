"""A sample: one implementation's part of a round."""

import math
from typing import NamedTuple

TIMINGS = ((0.02, 3), (0.1, 2), (math.inf, 1))
"""Pairs: the longest seconds per call, and the timings of a sample, of which the least counts.

The first one is slow, because other processes have used the caches since the last sample: by 30 % at 2 and 5 ms, by
11 % at 20 ms. So there is a second one, unless calls are so long that this is less than their scatter. Single timings
of calls of 10 to 30 ms scattered by 22 % between rounds, the least of three by 17 %: in the same time more rounds with
fewer timings say more."""


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
