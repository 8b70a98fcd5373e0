"""The number of outputs of timed calls that a process keeps for the judge; the process draws which ones."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from bench.plan.case import Point
from bench.plan.layers import ITEM_BYTES
from bench.sampling.inputs import TimedCall
from bench.sampling.rounds import LEAST_ROUNDS

SLIPS = 1 / 200
"""The accepted chance to miss an implementation that skips half of its work in a share CALLS of its calls. If the least
of several timings counts, the share is such that half of the samples have a short timing."""

CALLS = 1 / 3
"""The share of calls in which such an implementation saves work if each sample is one timing."""

TWICE = 1.1
"""The judged items per needed call, because two items may come from the same call."""

MORE, MORE_S, MORE_BYTES = 216, 0.1, 1 << 26
"""Up to MORE items are judged if the judge needs at most MORE_S for them and they have at most MORE_BYTES, because many
looks find rare mistakes."""

FEWEST, MOST_BYTES = 4, 1 << 28
"""Judged items have at most MOST_BYTES in all, unless these are fewer than FEWEST items: the process holds them until
its last calls, then writes them to a file. On an H200 this took 3 s for 54 items of 4 million elements."""

WHOLES = 2
"""The outputs that are judged whole in modes with gradients; one if it has more than MOST_BYTES. The gradient of a
weight is a sum over all items, so it can't be judged by item."""


class Kept(NamedTuple):
    """The numbers of kept outputs: `items`, of which each timing offers `of_timing`, and `wholes`."""

    items: int
    of_timing: int
    wholes: int


def kept_of(point: Point, timings: int, call_s: float) -> Kept:
    """Return how many outputs a process keeps, from the timings of its samples and the seconds of its calls.

    Each timing offers enough items that the fewest rounds can fill the needed number.
    """
    item_bytes = ITEM_BYTES["float32"] * point.num_tokens * point.channels
    least = min(_needed(point.batch, timings), max(FEWEST, MOST_BYTES // item_bytes))
    cheap = min(MORE, int(MORE_S * point.batch / call_s), MORE_BYTES // item_bytes)
    of_timing = min(point.batch, math.ceil(least / (LEAST_ROUNDS * timings)))
    wholes = WHOLES if point.batch * item_bytes <= MOST_BYTES else 1
    return Kept(max(least, cheap), of_timing, 0 if point.mode == "inference" else wholes)


def _needed(batch: int, timings: int) -> int:
    """Return how many items of drawn calls must be judged to miss a half-skipped batch with a chance of SLIPS at most.

    If a share s of the calls skips half of its work, a drawn item shows it with probability s/2; with a batch of one
    item s, because all of the item is compared.
    """
    share = CALLS if timings == 1 else 1 - 0.5 ** (1 / timings)
    return math.ceil(TWICE * math.log(SLIPS) / math.log(1 - share * (0.5 if batch > 1 else 1.0)))


def objection(number: Kept, keys: Sequence[int], calls: Sequence[TimedCall]) -> str:
    """Return why the calls that a process has kept don't match the timings with these keys; empty if they do."""
    if not {call.key for call in calls} <= {*keys}:
        return "handed over outputs of calls that it was not asked for"
    items = len({call for call in calls if call.item is not None})
    wholes = len({call for call in calls if call.item is None})
    least = min(number.items, number.of_timing * len(keys)), min(number.wholes, len(keys))
    if items < least[0] or wholes < least[1]:
        return f"handed over {items} items and {wholes} whole outputs, expected {least[0]} and {least[1]}"
    return ""
