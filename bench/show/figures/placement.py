"""Places of labels that don't touch, and of marks that would overlap."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import isotonic_regression

Span = tuple[float, float]
"""The lower and the upper end of a mark with its interval."""


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions as near as possible to the targets, at least `gap` apart and between low and high.

    They keep the order of the targets. If there is too little room for all, they go beyond `low`.
    """
    order, steps = np.argsort(targets, kind="stable"), gap * np.arange(len(targets))
    # minus their steps, positions that are a gap apart are positions that don't fall
    apart = isotonic_regression(np.asarray(targets)[order] - steps).x + steps
    positions = np.empty(len(targets))
    positions[order] = np.minimum(np.maximum(apart, low + steps), high - steps[::-1])
    return [float(position) for position in positions]


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
