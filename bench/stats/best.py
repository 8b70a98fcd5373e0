"""Which implementation of a point to use, and what that can cost: multiple comparisons with the best (Hsu 1984).

The slowdown of an implementation is its time relative to the fastest of the point. Each pair of implementations has one
interval, that of its ratio, and all that is said of the pair follows from it. If b is the truly fastest one, no upper
bound is broken, and b is not ruled out, unless the interval of b and another one is broken: with n rivals at n half per
cent of points at most. Two that are equally fast are told apart at 1 % of points.

An implementation is ruled out if another one is shown to be faster. Then it is slower than the fastest by at least as
much as it is shown to be slower than any other one.
"""

import math
from dataclasses import dataclass

import numpy as np

from bench.stats.contrasts import Contrasts
from bench.stats.estimates import MOST_FACTOR, Array, t_quantile

GOOD = 1.02
"""An implementation that costs no more than this is as good as the fastest: others decide, such as its memory."""

STEP, ROUNDS = 0.15, 100
"""The share of the way, in logarithms, that a round of `growth` goes: with few degrees of freedom more overshoots."""


@dataclass(frozen=True)
class Bounds:
    """By implementation: the slowdown and its bounds, NaN if they are unknown. One that may be the fastest has low = 1.

    An upper bound of more than MOST_FACTOR times the slowdown itself tells nothing, and counts as unknown.
    """

    value: Array
    low: Array
    high: Array


def ends(of: Contrasts) -> Array:
    """Return by how much the implementation of a column may be faster than that of a row, as a log ratio at most."""
    return of.difference + t_quantile(of.freedom) * of.error


def bounds(of: Contrasts) -> Bounds:
    """Return the bounds of the implementations of a point, of which there are two at least."""
    others = ~np.eye(len(of.names), dtype=bool)
    behind = -ends(of).T  # by how much a row is slower than a column, at least
    lead = np.maximum(np.max(np.where(others, of.difference, -math.inf), axis=1), 0.0)
    high = np.maximum(np.max(np.where(others, ends(of), -math.inf), axis=1), 0.0)
    low = np.maximum(np.max(np.where(others, behind, -math.inf), axis=1), 0.0)
    high = np.where(high - lead > math.log(MOST_FACTOR), np.nan, high)
    return Bounds(np.exp(lead), np.exp(low), np.exp(high))


def growth(half: Array | float, goal: Array | float, freedom: float | None = None) -> Array:
    """Return how many times the data so far must be measured in addition until half-widths fall to a goal.

    NaN where that is not to be expected, because the goal is not above 0. If the degrees of freedom are given they grow
    with the data: then a half-width that has few of them falls faster than with the root of the time.
    """
    times = np.where(np.asarray(goal) > 0, np.square(half / np.where(np.asarray(goal) > 0, goal, 1.0)), np.nan)
    if freedom is None:
        return times - 1
    plain = times
    for _ in range(ROUNDS):
        needed = plain * np.square(t_quantile(freedom * times) / t_quantile(freedom))
        times = np.maximum(times * (needed / times) ** STEP, 1.0)
    return times - 1
