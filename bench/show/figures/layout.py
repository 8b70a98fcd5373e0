"""Along an axis: its ends and its ticks, and places of labels and marks that don't touch."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator
from scipy.optimize import isotonic_regression

FEW, MANY = 4, 8

LADDERS = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 3), (1, 2, 3, 4, 6, 8), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1,))
"""Steps within a decade, the most common first."""

SHORT = 10
"""An axis that spans less than this factor may have evenly spaced ticks."""

BINS = (6, 10)
"""The numbers of parts into which even ticks divide an axis, approximately."""

BARE = 0.25
"""The largest share of an axis that may lie beyond its first or last tick."""

RATIO_LADDERS = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7))
RATIO_STEPS = (0.5, 0.25, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Possible ticks on one side of 1, the coarsest first: steps within a decade, or even steps."""

SIDE_FEW, SIDE_MANY = 2, 4

LEAST_GAP = 0.05
"""The least distance of two ticks of ratios, as a share of a vertical axis, so that labels don't touch."""

BAND_ROOM = 1.5
"""The factor by which an interval may stretch the axis beyond the values: one wide interval must not flatten lines."""

MARGIN = 0.06
LEAST_SPAN = 1.1
"""An axis spans at least this factor, so that noise doesn't look like a result."""


Span = tuple[float, float]
"""The lower and the upper end of a mark with its interval."""


def limits(values: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis around positive values and, as far as that is reasonable, their intervals."""
    low, high = min(_finite(values)), max(_finite(values))
    low = max(low / BAND_ROOM, min([low, *_finite(lows)]))
    high = min(high * BAND_ROOM, max([high, *_finite(highs)]))
    return padded(low, high)


def padded(low: float, high: float, margin: float = MARGIN) -> tuple[float, float]:
    """Return the ends of a logarithmic axis with a margin on both sides, as a share of its length."""
    middle, span = math.sqrt(low * high), max(high / low, LEAST_SPAN)
    reach = math.sqrt(span) * span**margin
    return middle / reach, middle * reach


def decimal(low: float, high: float) -> list[float]:
    """Return ticks at round decimal numbers, logarithmic or, if the axis is short, evenly spaced."""
    ladders = [_ladder(steps, low, high) for steps in LADDERS]
    others = (
        [even(low, high, bins) for bins in BINS]
        if high / low < SHORT
        else [ladders[-1][:: math.ceil(len(ladders[-1]) / MANY)]]
    )
    usable = [ticks for ticks in (*ladders, *others) if FEW <= len(ticks) <= MANY]
    reaching = (ticks for ticks in usable if _bare(ticks, low, high) <= BARE)
    return next(reaching, None) or min(usable, key=lambda ticks: _bare(ticks, low, high), default=others[-1])


def ratios(low: float, high: float, gap: float = LEAST_GAP) -> list[float]:
    """Return ticks at 1 and at round ratios on both sides of it, two or more on each side that has room for them.

    The axis holds 1; the distance of two ticks is at least `gap` of it.
    """
    distance = gap * math.log(high / low)
    return [*reversed(_side(low, 1.0, distance)), 1.0, *_side(1.0, high, distance)]


def binary(low: float, high: float) -> list[float]:
    """Return ticks at powers of two, or at even steps of a binary unit if the axis is short."""
    for stride in (1, 2, 3, 4, 5):
        first = math.ceil(math.log2(low) / stride) * stride
        ticks = [2.0**power for power in range(first, math.floor(math.log2(high)) + 1, stride)]
        if FEW <= len(ticks) <= MANY:
            return ticks
    unit = 2.0 ** (10 * max(0, math.floor(math.log2(low) / 10)))
    return [tick * unit for tick in even(low / unit, high / unit)]


def spaced(positions: Sequence[float], widths: Sequence[float], order: Sequence[int]) -> list[int]:
    """Return the sorted indices of labels that don't touch; those early in `order` go first.

    Positions and widths are in the same unit.
    """
    written: list[int] = []
    for index in order:
        if all(abs(positions[index] - positions[other]) >= (widths[index] + widths[other]) / 2 for other in written):
            written.append(index)
    return sorted(written)


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value) and value > 0]


def _bare(ticks: Sequence[float], low: float, high: float) -> float:
    """Return the share of an axis that lies below its first tick or above its last, whichever is more."""
    return max(math.log(ticks[0] / low), math.log(high / ticks[-1])) / math.log(high / low)


def _side(low: float, high: float, gap: float) -> list[float]:
    """Return ticks between 1 and the other end of an axis, from 1 on: the furthest reaching, of these the coarsest.

    The distance of their logarithms is at least `gap`.
    """
    ladders = (_ladder(steps, low, high) for steps in RATIO_LADDERS)
    best: list[float] = []
    for ticks in (*ladders, *(_multiples(step, low, high) for step in RATIO_STEPS)):
        outward = sorted((tick for tick in ticks if tick != 1), key=lambda tick: abs(math.log(tick)))
        logs = [abs(math.log(tick)) for tick in (1.0, *outward)]
        fits = len(outward) <= SIDE_MANY and all(b - a >= gap for a, b in itertools.pairwise(logs))
        if fits and _reach(outward) > _reach(best):
            best = outward
    return best


def _reach(outward: Sequence[float]) -> tuple[int, float]:
    """Return a rank of the ticks of a side: by their number up to two, then by their distance from 1."""
    return min(len(outward), SIDE_FEW), abs(math.log(outward[-1])) if outward else 0.0


def _multiples(step: float, low: float, high: float) -> list[float]:
    return [round(number * step, 9) for number in range(max(1, math.ceil(low / step)), math.floor(high / step) + 1)]


def _ladder(steps: Sequence[float], low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    ticks = (float(f"{step}e{decade}") for decade in decades for step in steps)
    return [tick for tick in ticks if low <= tick <= high]


def even(low: float, high: float, bins: int = BINS[0]) -> list[float]:
    """Return evenly spaced ticks at round numbers."""
    locator = MaxNLocator(nbins=bins, steps=[1, 2, 2.5, 5, 10])
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]


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


def sideways_steps(spans: Sequence[Span]) -> list[float]:
    """Return by how many steps each mark moves to the right, so that none overlaps another; below 0 is to the left.

    A mark that overlaps no other stays at 0, and so does a missing one, whose ends are NaN.
    A chain of overlapping marks is centred.
    """
    steps = [0.0] * len(spans)
    for group in _overlapping(spans):
        columns = _columns([spans[index] for index in group])
        for index, column in zip(group, columns, strict=True):
            steps[index] = column - max(columns) / 2
    return steps


def _overlapping(spans: Sequence[Span]) -> list[list[int]]:
    """Return the indices of the spans that overlap directly or through others, group by group, from below."""
    groups: list[list[int]] = []
    end = -math.inf
    for index in sorted((index for index, span in enumerate(spans) if not math.isnan(span[0])), key=spans.__getitem__):
        low, high = spans[index]
        if low > end:
            groups.append([])
        groups[-1].append(index)
        end = max(end, high)
    return groups


def _columns(spans: Sequence[Span]) -> list[int]:
    """Return the first column that is free for each span; spans are in the order of their lower ends."""
    ends: list[float] = []
    columns = []
    for low, high in spans:
        column = next((place for place, end in enumerate(ends) if end < low), len(ends))
        ends[column : column + 1] = [high]
        columns.append(column)
    return columns
