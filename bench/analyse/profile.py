"""Values that follow from a profile, and the difference of two: what appeared, vanished, grew or shrank."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import pandas as pd

from bench.analyse.comparable import STEADY
from bench.store.profile import KERNEL, OPERATOR, Block, Operator, Profile, Span, Stage

HEAVY = 0.2
"""If calls with and without the profiler differ by more than this share, times of the profile can't be trusted."""

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
class Peak:
    """The most bytes that were live at once in the median call, from when on, and in which blocks."""

    bytes: int
    at_s: float
    blocks: tuple[Block, ...]


def overhead(profile: Profile) -> float:
    """Return the share of its latency by which the profiler slowed the case down."""
    return profile.profiled_s / profile.timed_s - 1


def distortion(profile: Profile) -> str:
    """Return why the times of a profile can't be trusted, empty if they can."""
    share = overhead(profile)
    if share > HEAVY:
        return (
            f"The profiler slows it down by more than {HEAVY:.0%}: trust counts, bytes and the order of "
            "operators, not their times. A larger batch or more tokens make operators outlast their recording."
        )
    if share < -HEAVY:
        return (
            f"Calls took {-share:.0%} less time with the profiler than without, though it can only slow them down: the "
            "machine changed its speed meanwhile. Trust counts and bytes, or profile it again on a quiet machine."
        )
    return ""


def slowdown(profile: Profile, latency_s: float, low_s: float | None, high_s: float | None) -> float | None:
    """Return the unprofiled time of a call relative to its latency in the run; None if that is everyday drift.

    `low_s` and `high_s` are the ends of the run's interval, None if it has none.
    """
    factor = profile.timed_s / latency_s
    within = (low_s or latency_s) <= profile.timed_s <= (high_s or latency_s)
    return None if within or abs(math.log(factor)) <= math.log1p(STEADY) else factor


def time_s(operator: Operator) -> float:
    """Return an operator's time: the GPU's if the case ran on one, else the host's without the operators it called."""
    return operator.self_s if operator.device_s is None else operator.device_s


def shares(profile: Profile) -> tuple[float, ...]:
    """Return each operator's share in the time of all."""
    return _shares([time_s(operator) for operator in profile.operators])


def unnamed_s(profile: Profile) -> float:
    """Return the host's time in a profiled call outside all operators: Python, and freeing memory."""
    return profile.profiled_s - sum(operator.self_s for operator in profile.operators)


def stage_shares(profile: Profile) -> tuple[float, ...]:
    """Return each stage's share in the time of all stages."""
    return _shares([stage.time_s for stage in profile.stages])


def stage_sum_s(profile: Profile) -> float:
    """Return the sum of the times of all stages."""
    return sum(stage.time_s for stage in profile.stages)


def residual_s(profile: Profile) -> float:
    """Return the layer's time without that of its stages: below 0 if the profiler slowed the stages down."""
    return profile.timed_s - stage_sum_s(profile)


def rate(stage: Stage) -> float | None:
    """Return a stage's floating-point operations per second, None if they are not known."""
    return None if stage.flops is None or not stage.time_s else stage.flops / stage.time_s


def live_bytes(blocks: Sequence[Block]) -> list[tuple[float, int]]:
    """Return the live bytes after each moment at which they changed."""
    changes = [(block.start_s, block.bytes) for block in blocks]
    changes += [(block.end_s, -block.bytes) for block in blocks if block.end_s is not None]
    changes.sort()  # at the same moment blocks are freed first
    return list(zip((moment for moment, _ in changes), accumulate(size for _, size in changes), strict=True))


def peak(profile: Profile) -> Peak | None:
    """Return the peak with its live blocks, largest first; None without an allocation."""
    curve = live_bytes(profile.blocks)
    if not curve:
        return None
    at_s, size = max(curve, key=lambda point: point[1])
    alive = [block for block in profile.blocks if block.start_s <= at_s and (block.end_s is None or block.end_s > at_s)]
    return Peak(size, at_s, tuple(sorted(alive, key=lambda block: -block.bytes)))


def operator_table(profile: Profile) -> pd.DataFrame:
    """Return a row for each operator, in their order, the names of kernels separated by semicolons."""
    rows = [
        {**vars(operator), "share": share, "kernels": ";".join(operator.kernels)}
        for operator, share in zip(profile.operators, shares(profile), strict=True)
    ]
    columns = ["name", "calls", "self_s", "share", "allocated_bytes", "flops", "device_s", "kernels"]
    return pd.DataFrame(rows, columns=columns)


def _shares(times_s: Sequence[float]) -> tuple[float, ...]:
    total_s = sum(times_s)
    return tuple(time_s / total_s if total_s else 0.0 for time_s in times_s)


@dataclass(frozen=True)
class Cost:
    """The cost of an operator or kernel in a call: how often it ran, its own time, and the bytes that it allocated."""

    calls: float = 0.0
    time_s: float = 0.0
    allocated_bytes: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.calls + other.calls, self.time_s + other.time_s, self.allocated_bytes + other.allocated_bytes)


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
    called = [chains(each.spans, incomplete) for each in (a, b)]
    operators = _changes(OPERATOR, [_operators(a), _operators(b)], called)
    changes = [*operators, *_changes(KERNEL, [_kernels(a), _kernels(b)], called)]
    return sorted(changes, key=lambda change: (-abs(change.time_s), -abs(change.allocated_bytes), change.name))


def together(changes: Sequence[Change]) -> Change:
    """Return the sum of several changes, as one without a name."""
    before, after = (sum(costs, Cost()) for costs in zip(*((each.before, each.after) for each in changes), strict=True))
    return Change("", "", UNCHANGED, "", before, after)


def _changes(
    kind: str, sides: Sequence[Mapping[str, Cost]], called: Sequence[Mapping[str, Counter[Chain]]]
) -> Iterator[Change]:
    worth_s = TIME_WORTH * max(sum(cost.time_s for cost in side.values()) for side in sides)
    for name in dict.fromkeys(chain.from_iterable(sides)):
        before, after = (side.get(name, Cost()) for side in sides)
        became, by = _became(before, after, worth_s)
        was, now = (side.get(name, Counter()) for side in called)
        callers = {APPEARED: now, GREW: now - was, VANISHED: was, SHRANK: was - now}.get(became, Counter())
        yield Change(name, kind, became, by, before, after, tuple(each for each, _ in callers.most_common()))


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
    operators = {operator.name for operator in profile.operators}
    kernels: dict[str, Cost] = {}
    for span in profile.spans:
        if span.kind == KERNEL and span.name not in operators:
            kernels[span.name] = kernels.get(span.name, Cost()) + Cost(1, span.duration_s)
    return kernels


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
