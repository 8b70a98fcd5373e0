"""Two profiles side by side: which operators and kernels appeared, vanished, grew or shrank."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.store.profile import KERNEL, OPERATOR, Operator, Profile, Span

APPEARED, VANISHED, GREW, SHRANK, UNCHANGED = "appeared", "vanished", "grew", "shrank", "unchanged"

CALLS, BYTES, TIME = "calls", "bytes", "time"
"""What something grew or shrank by."""

TIME_MARGIN = 0.2
"""A time counts as another only beyond this share of the longer one: few calls leave times of operators uncertain."""

TIME_WORTH = 0.01
"""And only beyond this share of all operators' time: what is less decides nothing."""


Chain = tuple[str, ...]
"""The spans that something was called in, from the outside in: a stage, and operators in it."""


@dataclass(frozen=True)
class Cost:
    """What something did in a call: how often it ran, for how long without what it called, and what it allocated."""

    calls: float = 0.0
    time_s: float = 0.0
    allocated_bytes: float = 0.0


@dataclass(frozen=True)
class Change:
    """What became of an operator, or of a kernel on a GPU, from one profile to the other.

    `by` says what it grew or shrank by, empty otherwise. A side on which it doesn't occur costs nothing.
    `callers` are the chains of what it was called in, those that are new where it appeared or grew, those that are gone
    where it vanished or shrank.
    """

    name: str
    kind: str
    became: str
    by: str
    before: Cost
    after: Cost
    callers: tuple[Chain, ...] = ()

    @property
    def time_s(self) -> float:
        """How much longer it takes."""
        return self.after.time_s - self.before.time_s

    @property
    def allocated_bytes(self) -> float:
        """How much more it allocates."""
        return self.after.allocated_bytes - self.before.allocated_bytes

    def is_within(self, chain: Chain) -> bool:
        """Return whether it is the end of a chain or was called in it, in calls that are new or gone."""
        return any((*caller, self.name)[: len(chain)] == chain for caller in self.callers)

    @property
    def is_certain(self) -> bool:
        """Whether calls or bytes say that it changed: those are exact, a time is one profile's and has no interval."""
        return self.became != UNCHANGED and self.by != TIME


def difference(a: Profile, b: Profile) -> Sequence[Change]:
    """Return what became of every operator and kernel of either profile, the largest change of time first.

    Calls decide, then bytes, and only where both are the same the time, where it differs by more than TIME_MARGIN of
    the longer one and TIME_WORTH of all. Times of operators are the GPU's where the case ran on one, the host's
    elsewhere; those of kernels are of one call.
    """
    unsure = partly_kept(a) | partly_kept(b)
    called = chains(a.spans, unsure), chains(b.spans, unsure)
    changes = [
        change
        for kind, old, new in ((OPERATOR, _operators(a), _operators(b)), (KERNEL, _kernels(a), _kernels(b)))
        for change in _changes(kind, old, new, called)
    ]
    return sorted(changes, key=lambda change: (-abs(change.time_s), -abs(change.allocated_bytes), change.name))


def together(changes: Sequence[Change]) -> Change:
    """Return what several changes cost together, as one that has no name."""
    before, after = _sum([each.before for each in changes]), _sum([each.after for each in changes])
    return Change("", "", UNCHANGED, "", before, after)


def _changes(
    kind: str,
    old: Mapping[str, Cost],
    new: Mapping[str, Cost],
    called: tuple[Mapping[str, Counter[Chain]], Mapping[str, Counter[Chain]]],
) -> Iterator[Change]:
    worth_s = TIME_WORTH * max(sum(cost.time_s for cost in side.values()) for side in (old, new))
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name, Cost()), new.get(name, Cost())
        became, by = _became(before, after, worth_s)
        was, now = (side.get(name, Counter()) for side in called)
        callers = {APPEARED: now, GREW: now - was, VANISHED: was, SHRANK: was - now}.get(became, Counter())
        yield Change(name, kind, became, by, before, after, tuple(chain for chain, _ in callers.most_common()))


def _became(before: Cost, after: Cost, worth_s: float) -> tuple[str, str]:
    """Return what became of it, and by what it grew or shrank."""
    if not before.calls:
        return APPEARED, ""
    if not after.calls:
        return VANISHED, ""
    for by, old, new in ((CALLS, before.calls, after.calls), (BYTES, before.allocated_bytes, after.allocated_bytes)):
        if not math.isclose(old, new):  # means over calls, so only all but exact
            return (GREW if new > old else SHRANK), by
    margin_s = max(TIME_MARGIN * max(before.time_s, after.time_s), worth_s)
    if abs(after.time_s - before.time_s) > margin_s:
        return (GREW if after.time_s > before.time_s else SHRANK), TIME
    return UNCHANGED, ""


def _operators(profile: Profile) -> dict[str, Cost]:
    return {each.name: Cost(each.calls, _time_s(each), each.allocated_bytes) for each in profile.operators}


def _time_s(operator: Operator) -> float:
    return operator.self_s if operator.device_s is None else operator.device_s


def _kernels(profile: Profile) -> dict[str, Cost]:
    """Return the kernels that ran on a GPU; those that Inductor made for a CPU stand among the operators."""
    known = {operator.name for operator in profile.operators}
    kernels: dict[str, Cost] = {}
    for span in profile.spans:
        if span.kind == KERNEL and span.name not in known:
            cost = kernels.get(span.name, Cost())
            kernels[span.name] = Cost(cost.calls + 1, cost.time_s + span.duration_s)
    return kernels


def _sum(costs: Sequence[Cost]) -> Cost:
    return Cost(
        sum(cost.calls for cost in costs),
        sum(cost.time_s for cost in costs),
        sum(cost.allocated_bytes for cost in costs),
    )


def chains(spans: Sequence[Span], without: Collection[str] = ()) -> Mapping[str, Counter[Chain]]:
    """Return how often each name was called in which chain; what was called by nothing has an empty one.

    Names that chains are to do `without` are in none.
    """
    counts: dict[str, Counter[Chain]] = {}
    lanes: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start_s, span.depth)):
        around = lanes.setdefault(span.lane, [])
        while around and around[-1].depth >= span.depth:
            around.pop()
        counts.setdefault(span.name, Counter())[tuple(outer.name for outer in around if outer.name not in without)] += 1
        around.append(span)
    return counts


def partly_kept(profile: Profile) -> set[str]:
    """Return the operators of which not every call has a span: whether a short one has depends on its time."""
    spans = Counter(span.name for span in profile.spans)
    return {operator.name for operator in profile.operators if spans[operator.name] != operator.calls}
