"""Which implementation of a point to use, and what that can cost: multiple comparisons with the best (Hsu 1984).

The slowdown of an implementation is its time relative to the fastest of the point. If b is the truly fastest one, no
upper bound is broken unless b seems slower than another one by more than the error of both allows. With n rivals each
of these differences has an n-th of the level (Bonferroni). A row that seems slower than another one at a smaller level
can't be the fastest; so b is ruled out at less than 1 % of points.

The lower bound of a row that is ruled out is the larger of two. A row is slower than b, whichever of those that may be
the fastest that is: by the least of its differences to them. And it is slower than the fastest by at least as much as
it is slower than any other row; there each of all pairs has its part of the level.

Together the bounds of a point hold with 95 %: upper ones with 96 %, lower ones with 99 %.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from bench.stats.contrasts import Contrasts
from bench.stats.estimates import Array

ABOVE, SLOWER, ANY = 0.04, 0.0075, 0.0025
"""The chance that an upper bound of a point is broken, and the two parts of the chance that a lower one is: that of the
words *fastest* and *slower*, and that of all pairs."""

GOOD = 1.02
"""An implementation that costs no more than this is as good as the fastest: others decide, such as its memory."""


@dataclass(frozen=True)
class Bounds:
    """By implementation: the slowdown and its bounds, NaN if they are unknown. One that may be the fastest has low = 1.

    `further` is how many times as much as was measured has to be measured once more until the upper bound is GOOD; 0 if
    it is, NaN if that is not to be expected.
    """

    value: Array
    low: Array
    high: Array
    further: Array


def ends(of: Contrasts) -> Array:
    """Return by how much the implementation of a column may be faster than that of a row, as a log ratio at most.

    All that concern the truly fastest one hold together with 96 %.
    """
    return of.difference - special.stdtrit(of.freedom, ABOVE / max(1, len(of.names) - 1)) * of.error


def bounds(of: Contrasts) -> Bounds:
    """Return the bounds of the implementations of a point, of which there are two at least."""
    rivals = len(of.names) - 1
    others = ~np.eye(rivals + 1, dtype=bool)
    levels = SLOWER / rivals, ANY / rivals / (rivals + 1)
    below, below_any = (-special.stdtrit(of.freedom, level) * of.error for level in levels)
    lead = np.max(np.where(others, of.difference, -math.inf), axis=1)
    most = np.where(others, ends(of), -math.inf)
    high = np.maximum(np.max(most, axis=1), 0.0)
    may_be_fastest = ~(others & (of.difference > below)).any(axis=1)
    least = np.min(np.where(others & may_be_fastest, of.difference - below, math.inf), axis=1)
    low = np.maximum(least, np.max(np.where(others, of.difference - below_any, -math.inf), axis=1))
    low = np.where(np.isnan(high), np.nan, np.where(may_be_fastest, 0.0, np.maximum(low, 0.0)))
    nearest = np.argmax(np.nan_to_num(most, nan=math.inf), axis=1)
    needed = growth(of, most, math.log(GOOD))[np.arange(rivals + 1), nearest]
    further = np.where(high <= math.log(GOOD), 0.0, needed)
    return Bounds(np.exp(np.maximum(lead, 0.0)), np.exp(low), np.exp(high), further)


def growth(of: Contrasts, most: Array, goal: float) -> Array:
    """Return how many times as much as was measured has to be measured once more until the ends of pairs are `goal`.

    NaN where that is not to be expected, because the difference itself is larger.
    """
    room = goal - of.difference
    return np.where(room > 0, ((most - of.difference) / np.where(room > 0, room, 1.0)) ** 2 - 1, np.nan)
