"""Where a logarithmic axis ends, and where its ticks stand."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from matplotlib.ticker import MaxNLocator

Ticks = Callable[[float, float], list[float]]
"""From the ends of an axis to its ticks."""

FEW, MANY = 4, 8

LADDERS = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 3), (1,))
"""Steps within a decade, the most usual first."""

BAND_ROOM = 1.5
"""How far an interval may stretch the axis beyond the values: one wild interval must not flatten all lines."""

MARGIN = 0.06
LEAST_SPAN = 1.1
"""An axis spans at least this factor, so that noise doesn't look like a finding."""


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
    """Return ticks at round decimal numbers, logarithmic or, where the axis is short, evenly spaced."""
    for steps in LADDERS:
        ticks = _within(_ladder(steps, low), low, high)
        if FEW <= len(ticks) <= MANY:
            return ticks
    return _even(low, high) if high / low < 10 else _thinned(_within(_ladder((1,), low), low, high))


def binary(low: float, high: float) -> list[float]:
    """Return ticks at powers of two, or where the axis is short, at even steps of a binary unit."""
    for stride in (1, 2, 3, 4, 5):
        first = math.ceil(math.log2(low) / stride) * stride
        ticks = _within((2.0**power for power in itertools.count(first, stride)), low, high)
        if FEW <= len(ticks) <= MANY:
            return ticks
    unit = 2.0 ** (10 * max(0, math.floor(math.log2(low) / 10)))
    return [tick * unit for tick in _even(low / unit, high / unit)]


def spaced(positions: Sequence[float], widths: Sequence[float], order: Sequence[int]) -> list[int]:
    """Return which labels can be written without touching, the first in `order` before the others.

    Positions and widths are in the same unit; the answer is sorted.
    """
    kept: list[int] = []
    for index in order:
        if all(abs(positions[index] - positions[other]) >= (widths[index] + widths[other]) / 2 for other in kept):
            kept.append(index)
    return sorted(kept)


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value) and value > 0]


def _within(ticks: Iterator[float], low: float, high: float) -> list[float]:
    return list(itertools.takewhile(lambda tick: tick <= high, itertools.dropwhile(lambda tick: tick < low, ticks)))


def _ladder(steps: Sequence[float], low: float) -> Iterator[float]:
    for decade in itertools.count(math.floor(math.log10(low))):
        yield from (float(f"{step}e{decade}") for step in steps)


def _even(low: float, high: float) -> list[float]:
    locator = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10])
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high and tick > 0]


def _thinned(ticks: list[float]) -> list[float]:
    return ticks[:: math.ceil(len(ticks) / MANY)]
