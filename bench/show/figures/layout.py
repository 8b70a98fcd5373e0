"""Along an axis: its ends and its ticks, and places of labels that don't touch."""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator
from scipy.optimize import isotonic_regression

FEW, MANY = 4, 8

LADDERS = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 3), (1, 2, 3, 4, 6, 8), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1,))
"""Steps within a decade, the most common first."""

BINS = (6, 10)
"""The numbers of parts into which even ticks divide an axis, approximately."""

BARE = 0.25
"""The largest share of an axis that may lie beyond its first or last tick."""

FEW_RATIOS, BARE_OF_RATIOS = 5, 0.15
"""The same of ratios, which are read on both sides of 1."""

LEAST_GAP = 0.05
"""The least distance of two ticks, as a share of a vertical axis, so that labels don't touch."""

BAND_ROOM = 1.5
"""The factor by which an interval may stretch the axis beyond the values: one wide interval must not flatten lines."""

AXIS_ROOM = 0.06
LEAST_SPAN = 1.1
"""An axis spans at least this factor, so that noise doesn't look like a result."""


def limits(values: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis around positive values and, as far as that is reasonable, their intervals."""
    low, high = min(_finite(values)), max(_finite(values))
    low = max(low / BAND_ROOM, min([low, *_finite(lows)]))
    high = min(high * BAND_ROOM, max([high, *_finite(highs)]))
    return padded(low, high)


def padded(low: float, high: float, margin: float = AXIS_ROOM) -> tuple[float, float]:
    """Return the ends of a logarithmic axis with a margin on both sides, as a share of its length."""
    middle, span = math.sqrt(low * high), max(high / low, LEAST_SPAN)
    reach = math.sqrt(span) * span**margin
    return middle / reach, middle * reach


def decimal(low: float, high: float) -> list[float]:
    """Return ticks of a logarithmic axis at round decimal numbers, evenly spaced ones only if it is short."""
    return _best(_decimals(low, high, LEAST_GAP), low, high, FEW, BARE)


def ratios(low: float, high: float, gap: float = LEAST_GAP) -> list[float]:
    """Return ticks at 1 and at round ratios around it; the distance of two is at least `gap` of the axis.

    The axis holds 1.
    """
    with_one = [ticks for ticks in _decimals(low, high, gap) if np.isclose(ticks, 1).any()]
    return _best(with_one or [[1.0]], low, high, FEW_RATIOS, BARE_OF_RATIOS)


def binary(low: float, high: float) -> list[float]:
    """Return ticks at powers of two, or at even steps of a binary unit if the axis is short."""
    ticks = inside(LogLocator(base=2, numticks=MANY).tick_values(low, high), low, high)
    if len(ticks) >= FEW:
        return ticks
    unit = 2.0 ** (10 * max(0, math.floor(math.log2(low) / 10)))
    return [tick * unit for tick in even(low / unit, high / unit)]


def even(low: float, high: float, bins: int = BINS[0]) -> list[float]:
    """Return evenly spaced ticks at round numbers."""
    return inside(MaxNLocator(bins, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high), low, high)


def inside(ticks: Iterable[float], low: float, high: float) -> list[float]:
    """Return the ticks that an axis with these ends shows."""
    return [float(tick) for tick in ticks if low <= tick <= high]


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value) and value > 0]


def _decimals(low: float, high: float, gap: float) -> Iterator[list[float]]:
    """Yield two or more ticks at round decimal numbers, the most common first, with gaps between them."""
    # of a short axis a LogLocator makes even steps, also of 2.5, which need a digit that labels don't have
    ladders = (LogLocator(subs=steps, numticks=MANY).tick_values(low / 10, high * 10) for steps in LADDERS)
    even_ones = (MaxNLocator(bins, steps=[1, 2, 5, 10]).tick_values(low, high) for bins in BINS)
    for choice in (*ladders, *even_ones):
        ticks = inside(choice, low, high)
        gaps = np.diff(np.log(ticks))
        if 2 <= len(ticks) <= MANY and gaps.min() >= gap * math.log(high / low):
            yield ticks


def _best(choices: Iterable[list[float]], low: float, high: float, few: int, bare: float) -> list[float]:
    """Return the first that are `few` or more, else the most; of these one that leaves `bare` of the axis or less."""

    def rank(ticks: Sequence[float]) -> tuple[int, bool]:
        beyond = math.log(max(ticks[0] / low, high / ticks[-1]))
        return min(len(ticks), few), beyond <= bare * math.log(high / low)

    return max(choices, key=rank)


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions as near as possible to the targets, with gaps of at least `gap`, and between low and high.

    They keep the order of the targets. If there is too little room for all, they go beyond `low`.
    """
    order, steps = np.argsort(targets, kind="stable"), gap * np.arange(len(targets))
    # minus their steps, positions with a gap between them are positions that don't fall
    with_gaps = isotonic_regression(np.asarray(targets)[order] - steps).x + steps
    positions = np.empty(len(targets))
    positions[order] = np.minimum(np.maximum(with_gaps, low + steps), high - steps[::-1])
    return list(map(float, positions))
