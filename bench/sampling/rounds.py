"""Rounds: each implementation is measured once per round, in a new random order, until the time is over.

The caller's functions take the turns, in this process or in another worker.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from bench.machine import monotonic

Key = TypeVar("Key")
Taken = TypeVar("Taken")
"""The result of a turn: a sample."""

LEAST_ROUNDS = 5
"""The fewest rounds, even beyond the time budget.

A process costs about five of its calls before and after the rounds. With two rounds nearly all of the variation between
processes comes from the rounds: 7 of 8 % at the points of `quick`. So more rounds are worth more than more processes
(Kalibera and Jones, Rigorous benchmarking in reasonable time, ISMM 2013)."""


TIMINGS = ((0.003, 3), (math.inf, 1))
"""Pairs of the longest seconds per call and the timings of a sample, of which the least counts.

A timing starts with caches that other processes have used. This slows calls of a few milliseconds or more equally:
single timings moved ratios by 2 % at most, and are more precise in the same time than the least of two or three. Their
variance times their cost is 1.4 to 3 times less at 6 to 18 ms, and the same at 27 to 36 ms. A call of 1 ms would mostly
refill the caches, which moved a ratio by 9 %."""


@dataclass(frozen=True)
class Length:
    """The length of a replicate: `budget_s` seconds, and at least `least` rounds."""

    budget_s: float
    least: int = LEAST_ROUNDS


def timings(call_s: float) -> int:
    """Return the timings of a sample at a point where a call of the baseline takes `call_s` seconds.

    All implementations need the same number: with different ones, eager measured 1.5 times as fast as itself.
    """
    return next(count for longest_s, count in TIMINGS if call_s <= longest_s)


def sample(
    turns: Mapping[Key, Callable[[], Taken]],
    length: Length,
    rng: random.Random,
    failed: Callable[[Key, Exception], None],
) -> dict[Key, dict[int, Taken]]:
    """Take turns in rounds; after an error call `failed`, and leave that key out from then on.

    Return the samples of each key that didn't fail, by the number of their round.
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
