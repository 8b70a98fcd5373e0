"""Which implementation of a point to use, and what that can cost: multiple comparisons with the best (Hsu 1984).

The slowdown of an implementation is its time relative to the fastest of the point. If b is the truly fastest one, all
statements below follow from the differences between b and each other one: no upper bound is broken unless b seems
slower than one of them by more than its error allows, and no lower bound unless b seems faster by more. With n rivals
each difference has an n-th of the level (Bonferroni).

Together the bounds of a point hold with 95 %: upper ones with 96 %, lower ones with 99 %. So the truly fastest one is
called slower at no more than 1 % of points.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from bench.stats.contrasts import Contrasts
from bench.stats.replicates import Array

Truths = npt.NDArray[np.bool_]

ABOVE, BELOW = 0.04, 0.01
"""The chance that an upper bound of a point is broken, and that a lower one is."""

GOOD = 1.02
"""An implementation that costs no more than this is as good as the fastest: others decide, such as its memory."""


@dataclass(frozen=True)
class Bounds:
    """By implementation: the slowdown and its bounds, NaN if they are unknown; and which rows are shown to be slower.

    `is_slower` is true where the row is shown to be slower than the column. `further` is how many times as much as was
    measured has to be measured once more until the upper bound is GOOD; 0 if it is, NaN if that is not to be expected.
    """

    value: Array
    low: Array
    high: Array
    is_slower: Truths  # [row, column]
    further: Array


def bounds(of: Contrasts) -> Bounds:
    """Return the bounds of the implementations of a point, of which there are two at least."""
    rivals = len(of.names) - 1
    others = ~np.eye(rivals + 1, dtype=bool)
    above, below = (-special.stdtrit(of.freedom, level / rivals) * of.error for level in (ABOVE, BELOW))
    lead = np.max(np.where(others, of.difference, -math.inf), axis=1)
    ends = np.where(others, of.difference + above, -math.inf)
    high = np.maximum(np.max(ends, axis=1), 0.0)
    lows = of.difference - below
    is_slower = others & (lows > 0)
    may_be_fastest = ~is_slower.any(axis=1)
    low = np.min(np.where(others & may_be_fastest, lows, math.inf), axis=1)
    low = np.where(np.isnan(high), np.nan, np.where(may_be_fastest, 0.0, np.maximum(low, 0.0)))
    nearest = np.argmax(np.nan_to_num(ends, nan=math.inf), axis=1)
    at = np.arange(rivals + 1), nearest
    room = math.log(GOOD) - of.difference[at]
    needed = np.where(room > 0, (above[at] / np.where(room > 0, room, 1.0)) ** 2 - 1, np.nan)
    further = np.where(high <= math.log(GOOD), 0.0, needed)
    return Bounds(np.exp(np.maximum(lead, 0.0)), np.exp(low), np.exp(high), is_slower, further)
