"""What called what, from the spans of a call."""

from collections import Counter
from collections.abc import Mapping, Sequence

from bench.store.profile import Span

Chain = tuple[str, ...]
"""The spans that something was called in, from the outside in: a stage, and operators in it."""


def chains(spans: Sequence[Span]) -> Mapping[str, Counter[Chain]]:
    """Return how often each name was called in which chain; what was called by nothing has an empty one."""
    found: dict[str, Counter[Chain]] = {}
    lanes: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start_s, span.depth)):
        around = lanes.setdefault(span.lane, [])
        while around and around[-1].depth >= span.depth:
            around.pop()
        found.setdefault(span.name, Counter())[tuple(outer.name for outer in around)] += 1
        around.append(span)
    return found
