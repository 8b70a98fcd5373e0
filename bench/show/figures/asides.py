"""Marks that would overlap, side by side."""

import math
from collections.abc import Sequence

Span = tuple[float, float]
"""The lower and the upper end of a mark with its interval."""


def asides(spans: Sequence[Span]) -> list[float]:
    """Return by how many steps each mark moves to the right, below 0 to the left, so that none overlaps another.

    A mark that overlaps no other stays at 0, and so does one that is missing: its ends are NaN.
    Marks that overlap, each with the next, are centred together.
    """
    moved = [0.0] * len(spans)
    for group in _overlapping(spans):
        columns = _columns([spans[index] for index in group])
        for index, column in zip(group, columns, strict=True):
            moved[index] = column - max(columns) / 2
    return moved


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
