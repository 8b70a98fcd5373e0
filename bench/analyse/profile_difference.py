"""The difference of two profiles: which operators and kernels appeared, vanished, grew or shrank."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from bench.analyse.profile import time_s
from bench.store.profile import KERNEL, OPERATOR, Profile, Span

APPEARED, VANISHED, GREW, SHRANK, UNCHANGED = "appeared", "vanished", "grew", "shrank", "unchanged"

CALLS, BYTES, TIME = "calls", "bytes", "time"
"""The quantities by which an operator can grow or shrink."""

TIME_MARGIN = 0.2
"""Times differ if they differ by more than this share of the longer one: with few calls they are uncertain."""

TIME_WORTH = 0.01
"""They must also differ by more than this share of the time of all operators: less is of no importance."""

Chain = tuple[str, ...]
"""The spans around a call, outermost first: a stage, and operators in it."""


@dataclass(frozen=True)
class Cost:
    """The cost of an operator or kernel in a call: how often it ran, its own time, and the bytes that it allocated."""

    calls: float = 0.0
    time_s: float = 0.0
    allocated_bytes: float = 0.0


@dataclass(frozen=True)
class Change:
    """The change of an operator, or of a kernel on a GPU, from one profile to the other.

    `by` is the quantity by which it grew or shrank, empty otherwise. Its cost is 0 on a side without it.
    `callers` are the chains around its calls: the new ones if it appeared or grew, the old ones if it vanished or
    shrank.
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
        """The seconds that it takes longer."""
        return self.after.time_s - self.before.time_s

    @property
    def allocated_bytes(self) -> float:
        """The bytes that it allocates more."""
        return self.after.allocated_bytes - self.before.allocated_bytes

    def is_within(self, chain: Chain) -> bool:
        """Return whether it is the end of a chain or was called in it, in calls that are new or gone."""
        return any((*caller, self.name)[: len(chain)] == chain for caller in self.callers)

    @property
    def is_certain(self) -> bool:
        """Whether calls or bytes show that it changed: these are exact; the time of one profile has no interval."""
        return self.became != UNCHANGED and self.by != TIME


def difference(a: Profile, b: Profile) -> Sequence[Change]:
    """Return the change of every operator and kernel of either profile, the largest change of time first.

    Calls decide, then bytes, then the time if it differs by more than TIME_MARGIN of the longer one and TIME_WORTH of
    all. Times of operators are the GPU's if the case ran on one, else the host's; those of kernels are of one call.
    """
    incomplete = partly_kept(a) | partly_kept(b)
    called = chains(a.spans, incomplete), chains(b.spans, incomplete)
    changes = [
        change
        for kind, old, new in ((OPERATOR, _operators(a), _operators(b)), (KERNEL, _kernels(a), _kernels(b)))
        for change in _changes(kind, old, new, called)
    ]
    return sorted(changes, key=lambda change: (-abs(change.time_s), -abs(change.allocated_bytes), change.name))


def together(changes: Sequence[Change]) -> Change:
    """Return the sum of several changes, as one without a name."""
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
    """Return how it changed, and the quantity by which it grew or shrank."""
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
    return {each.name: Cost(each.calls, time_s(each), each.allocated_bytes) for each in profile.operators}


def _kernels(profile: Profile) -> dict[str, Cost]:
    """Return the kernels that ran on a GPU; those that Inductor made for a CPU are among the operators."""
    known = {operator.name for operator in profile.operators}
    kernels: dict[str, Cost] = {}
    for span in profile.spans:
        if span.kind == KERNEL and span.name not in known:
            cost = kernels.get(span.name, Cost())
            kernels[span.name] = Cost(cost.calls + 1, cost.time_s + span.duration_s)
    return kernels


def _sum(costs: Sequence[Cost]) -> Cost:
    return Cost(*(sum(getattr(cost, field.name) for cost in costs) for field in fields(Cost)))


def chains(spans: Sequence[Span], without: Collection[str] = ()) -> Mapping[str, Counter[Chain]]:
    """Return how often each name was called in which chain, which is empty outside all spans.

    Chains leave out the names in `without`.
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
    """Return the operators with calls that have no span, because a profile may leave out short ones."""
    spans = Counter(span.name for span in profile.spans)
    return {operator.name for operator in profile.operators if spans[operator.name] != operator.calls}
