"""Which implementation of a point to use, and what that can cost: multiple comparisons with the best (Hsu 1984).

The slowdown of an implementation is its time relative to the fastest of the point. Each pair of implementations has one
interval, that of its ratio, and all that is said of the pair follows from it. If b is the truly fastest one, no upper
bound is broken unless the interval of b and another one is: with n rivals at n half per cent of points at most. An
implementation is ruled out if another one is shown to be faster. Two that are equally fast are told apart at 1 % of
points.

A row that is ruled out is slower than the fastest by at least its smallest difference to any row that may be the
fastest. And it is slower by as much as it is slower than the baseline, which its speed-up shows.
"""

import math
from dataclasses import dataclass

import numpy as np

from bench.stats.contrasts import Contrasts
from bench.stats.estimates import PAIR, Array, t_quantile

GOOD = 1.02
"""An implementation that costs no more than this is as good as the fastest: others decide, such as its memory."""


@dataclass(frozen=True)
class Bounds:
    """By implementation: the slowdown and its bounds, NaN if they are unknown. One that may be the fastest has low = 1.

    `further`: measure this many times the data so far, in addition, and `high` should fall to GOOD; 0 if it is there,
    NaN if that is not to be expected.
    """

    value: Array
    low: Array
    high: Array
    further: Array


def ends(of: Contrasts) -> Array:
    """Return by how much the implementation of a column may be faster than that of a row, as a log ratio at most."""
    return of.difference + t_quantile(of.freedom, PAIR) * of.error


def bounds(of: Contrasts, baseline: str = "") -> Bounds:
    """Return the bounds of the implementations of a point, of which there are two at least.

    The lower ones agree with the intervals of speed-ups over the baseline, if it is among them.
    """
    rivals = len(of.names) - 1
    others = ~np.eye(rivals + 1, dtype=bool)
    behind = -ends(of).T  # by how much a row is slower than a column, at least
    lead = np.max(np.where(others, of.difference, -math.inf), axis=1)
    most = np.where(others, ends(of), -math.inf)
    high = np.maximum(np.max(most, axis=1), 0.0)
    may_be_fastest = ~(others & (behind > 0)).any(axis=1)
    low = np.min(np.where(others & may_be_fastest, behind, math.inf), axis=1)
    if baseline in of.names:
        low = np.fmax(low, np.where(others, behind, -math.inf)[:, of.names.index(baseline)])
    low = np.where(np.isnan(high), np.nan, np.where(may_be_fastest, 0.0, np.maximum(low, 0.0)))
    nearest = np.argmax(np.nan_to_num(most, nan=math.inf), axis=1)
    needed = growth(of, most, math.log(GOOD))[np.arange(rivals + 1), nearest]
    further = np.where(high <= math.log(GOOD), 0.0, needed)
    return Bounds(np.exp(np.maximum(lead, 0.0)), np.exp(low), np.exp(high), further)


def growth(of: Contrasts, most: Array, goal: float) -> Array:
    """Return how many times the data so far must be measured in addition until the ends of pairs are `goal`.

    NaN where that is not to be expected, because the difference itself is larger.
    """
    room = goal - of.difference
    return np.where(room > 0, ((most - of.difference) / np.where(room > 0, room, 1.0)) ** 2 - 1, np.nan)
