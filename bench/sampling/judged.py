"""How many outputs of its timed calls a process keeps for the judge; it draws itself which."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from bench.plan.case import Point
from bench.plan.layers import ITEM_BYTES
from bench.sampling.inputs import TimedCall
from bench.sampling.rounds import LEAST_ROUNDS

SLIPS = 1 / 200
"""The accepted chance to miss an implementation that skips half of its work in CALLS of its calls; with the least of
several timings, in so many calls that half of the samples hold one."""

CALLS = 1 / 3
"""The calls in which such an implementation saves work if each sample is one timing."""

TWICE = 1.1
"""How many items are judged for each call that is needed: two of them may be of the same call."""

MORE, MORE_S, MORE_BYTES = 216, 0.1, 1 << 26
"""Up to so many items are judged if they cost a call so many seconds, and have so many bytes: rare mistakes are found
by many looks."""

FEWEST, MOST_BYTES = 4, 1 << 28
"""No more items are judged than have so many bytes, but FEWEST: the process holds them until its last calls, and then
writes them into a file. On an H200 it took three seconds to hand over 54 items of 4 million elements."""

WHOLES = 2
"""The outputs that are judged whole in modes with gradients, one if it has more than MOST_BYTES: the gradient of a
weight is a sum over all items, so that it can't be judged by items."""


class Kept(NamedTuple):
    """How many outputs are kept: so many items, of which each timing offers `of_timing`, and so many whole ones."""

    items: int
    of_timing: int
    wholes: int


def kept_of(point: Point, timings: int, call_s: float) -> Kept:
    """Return how many outputs a process keeps whose samples have so many timings, and whose calls take so long.

    Each timing offers as many items as find most in the fewest rounds.
    """
    item_bytes = ITEM_BYTES["float32"] * point.num_tokens * point.channels
    least = min(_found(point.batch, timings), max(FEWEST, MOST_BYTES // item_bytes))
    cheap = min(MORE, int(MORE_S * point.batch / call_s), MORE_BYTES // item_bytes)
    of_timing = min(point.batch, math.ceil(least / (LEAST_ROUNDS * timings)))
    wholes = WHOLES if point.batch * item_bytes <= MOST_BYTES else 1
    return Kept(max(least, cheap), of_timing, 0 if point.mode == "inference" else wholes)


def _found(batch: int, timings: int) -> int:
    """Return how many items of drawn calls are judged, so that few slip through that save half of the batch.

    Half of the work in a share s of the calls is found in a drawn item with probability s/2, or s if the batch is one
    item: then every part of it is compared.
    """
    share = CALLS if timings == 1 else 1 - 0.5 ** (1 / timings)
    return math.ceil(TWICE * math.log(SLIPS) / math.log(1 - share * (0.5 if batch > 1 else 1.0)))


def objection(number: Kept, keys: Sequence[int], calls: Sequence[TimedCall]) -> str:
    """Return what is wrong with the calls that a process has kept of timings with these keys; empty if nothing is."""
    if not {call.key for call in calls} <= {*keys}:
        return "handed over outputs of calls that it was not asked for"
    items = len({call for call in calls if call.item is not None})
    wholes = len({call for call in calls if call.item is None})
    least = min(number.items, number.of_timing * len(keys)), min(number.wholes, len(keys))
    if items < least[0] or wholes < least[1]:
        return f"handed over {items} items and {wholes} whole outputs, expected {least[0]} and {least[1]}"
    return ""
