"""Rounds: each implementation is measured once in a round, in a new random order, for some seconds.

The caller says how a turn is taken: by an implementation in this process, or by another worker.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from bench.machine import monotonic

Key = TypeVar("Key")
Taken = TypeVar("Taken")
"""What a turn takes: a sample."""

LEAST_ROUNDS = 5
"""The fewest rounds, whatever the budget says.

A process costs about five of its calls before and after the rounds. With two rounds nearly all of the scatter between
processes came from the rounds: 7 of 8 % at the points of `quick`. Then rounds are worth more than further processes
(Kalibera and Jones, Rigorous benchmarking in reasonable time, ISMM 2013)."""


TIMINGS = ((0.003, 3), (math.inf, 1))
"""Pairs: the longest seconds per call, and the timings of a sample, of which the least counts.

A timing follows the work of other processes, which have used the caches. A call of some milliseconds and more is
slowed by this about as much as its rivals: single timings moved ratios by 2 % at most, and say more in the same time
than the least of two or three. At 6 to 18 ms their variance times their cost is 1.4 to 3 times less, at 27 to 36 ms the
same. A call of 1 ms measures the way back into the caches: there a ratio moved by 9 %."""


@dataclass(frozen=True)
class Length:
    """How long a replicate takes rounds: so many seconds, and not fewer than `least` rounds."""

    budget_s: float
    least: int = LEAST_ROUNDS


def timings(call_s: float) -> int:
    """Return the timings of a sample at a point where a call of the baseline takes so many seconds.

    All implementations have the same number: with others, eager was measured 1.5 times as fast as itself.
    """
    return next(count for longest_s, count in TIMINGS if call_s <= longest_s)


def sample(
    turns: Mapping[Key, Callable[[], Taken]],
    length: Length,
    rng: random.Random,
    failed: Callable[[Key, Exception], None],
) -> dict[Key, dict[int, Taken]]:
    """Take turns in rounds for so long; one that raises leaves the rounds, and `failed` is called.

    Returns the samples of those that did not fail, by the number of their round.
    """
    taken: dict[Key, dict[int, Taken]] = {key: {} for key in turns}
    end, number = monotonic.now_s() + length.budget_s, 0
    while taken and (number < length.least or monotonic.now_s() < end):
        for key in rng.sample([*taken], len(taken)):
            try:
                taken[key][number] = turns[key]()
            except Exception as error:
                failed(key, error)
                del taken[key]
        number += 1
    return taken
