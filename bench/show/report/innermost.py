"""Who does the work of a span: the one that fills it."""

from collections.abc import Sequence

from bench.store.profile import Span

FILLS = 0.5
"""An operator that takes this share of another's time does its work."""


def innermost(span: Span, spans: Sequence[Span]) -> Span:
    """Return the deepest of the spans that lie in this one and fill it, this one itself where none does."""
    end_s = span.start_s + span.duration_s
    inside = [
        other
        for other in spans
        if other.lane == span.lane
        and other.depth > span.depth
        and other.start_s >= span.start_s
        and other.start_s + other.duration_s <= end_s
        and other.duration_s >= FILLS * span.duration_s
    ]
    return max([span, *inside], key=lambda other: other.depth)
