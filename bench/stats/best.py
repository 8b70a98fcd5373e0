"""The implementation to use at a point and its possible cost: multiple comparisons with the best (Hsu 1984).

The slowdown of an implementation is its time relative to the fastest of the point. Each pair of implementations has one
interval for its ratio, which determines every statement about the pair. Let b be the truly fastest one. All upper
bounds hold and b is not ruled out as long as b's intervals with the others hold. With n rivals that fails at n half
per cent of points at most. Two that are equally fast are told apart at 1 % of points.

An implementation is ruled out if another one is significantly faster. The lower bound of its slowdown is the largest
lower bound of its ratios to the others.
"""

import math
from dataclasses import dataclass

import numpy as np

from bench.stats.contrasts import Contrasts
from bench.stats.estimates import MOST_FACTOR, Array, t_quantile

GOOD = 1.02
"""An implementation within this factor is as good as the fastest; then other costs decide, such as memory."""

STEP, ROUNDS = 0.15, 100
"""The step size of `growth` on a log scale, and its rounds; larger steps overshoot with few degrees of freedom."""


@dataclass(frozen=True)
class Bounds:
    """The slowdown of each implementation with its bounds, NaN if unknown; one that may be the fastest has low = 1.

    An upper bound above MOST_FACTOR times the slowdown itself says nothing, and counts as unknown.
    """

    value: Array
    low: Array
    high: Array


def ends(of: Contrasts) -> Array:
    """Return the largest log ratio by which each column's implementation may be faster than each row's."""
    return of.difference + t_quantile(of.freedom) * of.error


def bounds(of: Contrasts) -> Bounds:
    """Return the bounds of at least two implementations of a point."""
    others = ~np.eye(len(of.names), dtype=bool)
    behind = -ends(of).T  # the least log ratio by which a row is slower than a column
    lead = np.maximum(np.max(np.where(others, of.difference, -math.inf), axis=1), 0.0)
    high = np.maximum(np.max(np.where(others, ends(of), -math.inf), axis=1), 0.0)
    low = np.maximum(np.max(np.where(others, behind, -math.inf), axis=1), 0.0)
    high = np.where(high - lead > math.log(MOST_FACTOR), np.nan, high)
    return Bounds(np.exp(lead), np.exp(low), np.exp(high))


def growth(half: Array | float, goal: Array | float, freedom: float | None = None) -> Array:
    """Return the further data needed until half-widths reach a goal, as a multiple of the data so far.

    NaN for a goal that isn't positive. Degrees of freedom, if given, grow with the data, so that a half-width with few
    of them shrinks faster than with the square root of the time.
    """
    times = np.where(np.asarray(goal) > 0, np.square(half / np.where(np.asarray(goal) > 0, goal, 1.0)), np.nan)
    if freedom is None:
        return times - 1
    plain = times
    for _ in range(ROUNDS):
        needed = plain * np.square(t_quantile(freedom * times) / t_quantile(freedom))
        times = np.maximum(times * (needed / times) ** STEP, 1.0)
    return times - 1
