"""Places of labels that don't touch, and of marks that would overlap."""

import math
from collections.abc import Sequence

from scipy.optimize import isotonic_regression

Span = tuple[float, float]
"""The lower and the upper end of a mark with its interval."""


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions as near as possible to the targets, at least `gap` apart and between low and high.

    They keep the order of the targets. If there is too little room for all, they go beyond `low`.
    """
    order = sorted(range(len(targets)), key=lambda index: targets[index])
    apart = _apart([targets[index] for index in order], gap)
    apart = _inside(apart, gap, low, high)
    positions = dict(zip(order, apart, strict=True))
    return [positions[index] for index in range(len(targets))]


def _apart(targets: Sequence[float], gap: float) -> list[float]:
    # minus index · gap, positions that are a gap apart are positions that don't fall
    rising = isotonic_regression([position - place * gap for place, position in enumerate(targets)]).x
    return [position + place * gap for place, position in enumerate(rising.tolist())]


def _inside(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    count = len(positions)
    raised = [max(position, low + place * gap) for place, position in enumerate(positions)]
    return [min(position, high - (count - 1 - place) * gap) for place, position in enumerate(raised)]


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
