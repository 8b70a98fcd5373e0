"""What called what, from the spans of a call."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from bench.store.profile import Profile, Span

Chain = tuple[str, ...]
"""The spans that something was called in, from the outside in: a stage, and operators in it."""


def chains(spans: Sequence[Span], without: Collection[str] = ()) -> Mapping[str, Counter[Chain]]:
    """Return how often each name was called in which chain; what was called by nothing has an empty one.

    Names that chains are to do `without` are in none.
    """
    found: dict[str, Counter[Chain]] = {}
    lanes: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start_s, span.depth)):
        around = lanes.setdefault(span.lane, [])
        while around and around[-1].depth >= span.depth:
            around.pop()
        found.setdefault(span.name, Counter())[tuple(outer.name for outer in around if outer.name not in without)] += 1
        around.append(span)
    return found


def partly_kept(profile: Profile) -> set[str]:
    """Return the operators of which not every call has a span: whether a short one has depends on its time."""
    kept = Counter(span.name for span in profile.spans)
    return {operator.name for operator in profile.operators if kept[operator.name] != operator.calls}
