"""What a duel says: may the second side take the place of the first, and what belongs into a pull request."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench.analyse.change import Change
from bench.analyse.flags import is_opposed, launch_bound
from bench.analyse.rows import grouped
from bench.analyse.verdict import LOST
from bench.plan.case import AFTER, BEFORE
from bench.plan.device import CPU
from bench.plan.sides import DIFFER, SAME
from bench.plan.verdicts import AS_FAST, DIFFERENT, FASTER, NOT_MEASURED, OF_SIDES, OPEN, SLOWER
from bench.show import intervals
from bench.show.answer import bound_by_host
from bench.show.blocks import BAD, HEAD, PLAIN, WARNING, Block, Code, Column, Folded, Lines, Table, right
from bench.show.comparison.changes import VERDICT, Comparison, time
from bench.show.rows import Row, reason
from bench.show.text import capital, memory_setting, more, share_of, slower
from bench.stats.estimates import Interval
from bench.store import units
from bench.store.environment import Environment
from impls.catalogue import name_of

DECIMALS = 3
"""The most decimals of a ratio: changes of less than a percent are told apart."""

MOST_KERNELS = 6
"""The most kernels that are named of those that both sides ran."""

SAME_MEMORY = 0.01
"""Memory that differs by less is called the same."""

LATER = 1.2
"""A duel that isn't decided is proposed to go on for so many times as long as it is expected to need."""

WORDS = {
    FASTER: "faster than {before}",
    AS_FAST: "not slower than {before} by more than {bound}",
    SLOWER: "slower than {before}",
    OPEN: "not known to be as fast as {before}",
    NOT_MEASURED: "not measured",
    DIFFERENT: "different from {before}",
}
"""What a verdict says of the second side."""

UNCOMPARED = "weights differ: outputs not compared"
"""What is said of sides of the same layer whose weights have other names or shapes."""

KEPT, EXCEEDED, UNDECIDED = "kept", "exceeded", "not decided"
"""Whether the second side keeps within what is allowed."""


@dataclass(frozen=True)
class Told(Comparison):
    """What is known at the end of a duel.

    `machine` says whether it was quiet, and why.
    `spent_s` are the seconds of the race, and `needed_s` those it is expected to need in all until it is decided.
    """

    before: str
    after: str
    here: Environment
    command: str
    bound: float
    spent_s: float
    allow: float | None = None
    machine: tuple[bool, str] = (True, "")
    needed_s: float = math.nan

    @property
    def sides(self) -> Mapping[str, Mapping[str, Any]]:
        """What is known of the code of each side, empty if it is the same."""
        sides: Mapping[str, Mapping[str, Any]] = self.here.context.get("sides", {})
        return sides

    @property
    def weights(self) -> str | None:
        """Whether the weights of both sides are the SAME or DIFFER; None if the layers are others."""
        weights: str | None = self.here.context.get("weights", SAME)
        return weights

    @property
    def is_uncompared(self) -> bool:
        """Whether outputs were not compared although both sides have the same layer."""
        return self.weights == DIFFER and self.worst.verdict not in LOST

    @property
    def beyond(self) -> tuple[list[Change], list[Change]]:
        """The changes that are shown to exceed what is allowed, and those that may; none if nothing is allowed."""
        allow = math.inf if self.allow is None else self.allow
        shown = [each for each in self.changes if each.exceeds(allow)]
        return shown, [each for each in self.changes if self.allow is not None and each.may_exceed(allow)]

    @property
    def allowed(self) -> str | None:
        """Whether what is allowed is KEPT, EXCEEDED or UNDECIDED; None if nothing is, or if a point can't be judged."""
        exceeding, unsure = self.beyond
        kind = EXCEEDED if exceeding else UNDECIDED if unsure else KEPT
        return None if self.allow is None or self.verdict in LOST else kind

    @property
    def is_bad(self) -> bool:
        """Whether a side is different, could not be measured, or doesn't keep within what is allowed.

        A side whose outputs were not compared may compute anything, which is allowed only if nothing is said to be.
        """
        is_unknown = self.is_uncompared and self.allow is not None
        return self.verdict in LOST or self.allowed == EXCEEDED or is_unknown

    @property
    def verdict(self) -> str:
        """The verdict over all points: that of the worst."""
        return self.worst.verdict

    @cached_property
    def worst(self) -> Change:
        """The change with the worst verdict; of several, the one with the least speed-up."""
        return min(self.changes, key=lambda of: (OF_SIDES.index(of.verdict), of.numbers()["change"] or math.inf))

    def at(self, changes: Sequence[Change]) -> str:
        """Return the names of the points of some changes: ` at N=197, N=577`; empty if there is no other point."""
        return f" at {', '.join(map(self.label, changes))}" if changes and len(self.changes) > 1 else ""


def blocks(told: Told) -> Iterator[Block]:
    """Yield what a duel says, the answer first; a comment on a pull request folds the facts away."""
    yield Lines([headline(told)], HEAD)
    yield Lines([*_allowed(told)], BAD if told.is_bad else PLAIN)
    yield Lines([*_doubts(told)], WARNING)
    yield Lines([*_waiting(told), told.shared, *map(capital, memory_setting(told.points))])
    yield Table(_columns(told), told.changes)
    yield Lines([*_opposed(told)])
    yield Lines([*_failures(told)], BAD, is_list=True)
    facts = Lines([*_facts(told)], is_list=True, is_foreign=True)  # the @main of a checkout is no user
    yield Folded("Kernels, versions, machine", Code([]), facts)
    yield Folded("Again", Code([told.command], "sh"))


def headline(told: Told) -> str:
    """Return whether the second side may take the place of the first, in a sentence."""
    answer = capital(_answer(told)) if told.after == AFTER else f"{told.after} is {_answer(told)}"
    return f"{answer}. {capital(UNCOMPARED)}" if told.is_uncompared else answer


def _answer(told: Told) -> str:
    worst, count = told.worst, len(told.changes)
    kinds = Counter(each.verdict for each in told.changes)
    where = f" at {kinds[worst.verdict]} of {count} points" if count > 1 else ""
    if worst.verdict in LOST:
        is_first = worst.new.get("status") in ("skipped", None)
        row, name = (worst.base, told.before) if is_first else (worst.new, told.after)
        why = (reason(row) if row else "") or "no replicate has both sides"
        is_named = why.startswith(f"{name} ") or worst.verdict == DIFFERENT or told.after != AFTER
        return f"{_said(worst.verdict, told)}{where}: {why if is_named or not row else f'{name}: {why}'}"
    if count == 1:
        return f"{_single(worst, told)}{_memory(worst)}"
    ratio = f"{_ratio(worst.ratio)} at {told.label(worst)}"
    if worst.verdict in (FASTER, AS_FAST):
        return f"{_said(worst.verdict, told)} at all {count} points, by {ratio} at worst"
    others = [
        f"{_said(kind, told)} at {kinds[kind]}" for kind in reversed(OF_SIDES) if kind != worst.verdict and kinds[kind]
    ]
    later = _later(told) if kinds[OPEN] else ""
    return f"{'; '.join([f'{_said(worst.verdict, told)}{where}, by {ratio} at worst', *others])}{later}"


def _said(kind: str, told: Told) -> str:
    return WORDS[kind].format(before=told.before, bound=_exact(told.bound))


def _single(of: Change, told: Told) -> str:
    ratio = _ratio(of.ratio)
    if of.verdict != OPEN:
        return f"{_said(of.verdict, told)}: {ratio}"
    limits = [told.bound] if told.allow is None else [told.bound, told.allow]
    most = f", so {slower(1 / of.ratio.low, limits)}" if of.ratio.low > 0 else ""
    return f"not decided after {units.duration(told.spent_s)}: {ratio}{most}{_later(told)}"


def _ratio(of: Interval) -> str:
    """Return a speed-up with as many decimals as the bound needs that follows from its low end."""
    if not 0 < of.low < 1:
        return intervals.ratio(of, DECIMALS)
    bounds = ((number, more(1 / low)) for number in range(DECIMALS) if (low := round(of.low, number)))
    least = next((number for number, bound in bounds if bound == more(1 / of.low)), DECIMALS)
    return intervals.ratio(of, DECIMALS, least=least)


def _exact(share: float) -> str:
    """Return a share that was asked for, as it was asked for: `1.25%`."""
    return f"{100 * share:.4g}%"


def _later(told: Told) -> str:
    """Return which time would decide what is open, empty if that isn't known."""
    if not math.isfinite(told.needed_s):
        return ""
    tens = math.ceil(LATER * told.needed_s / 10)
    return f"; --within {f'{tens}0s' if tens < 12 else f'{math.ceil(tens / 6)}m'} should decide"


def _memory(of: Change) -> str:
    change = of.memory - 1
    if math.isnan(change):
        return ""
    if abs(change) < SAME_MEMORY:
        return "; the same memory"
    return f"; {units.percent(abs(change))} {'more' if change > 0 else 'less'} memory"


def _allowed(told: Told) -> Iterator[str]:
    """Yield whether the second side keeps within what is allowed, if anything is said to be."""
    if told.allow is None or not told.allowed:
        return
    exceeding, unsure = told.beyond
    where = told.at(exceeding or unsure)
    later = _later(told) if told.allowed == UNDECIDED and told.worst.verdict != OPEN else ""
    unknown = "; outputs that were not compared are not allowed" if told.is_uncompared else ""
    yield f"At most {_exact(told.allow)} slower is allowed: {told.allowed}{where}{later}{unknown}"


def _doubts(told: Told) -> Iterator[str]:
    """Yield what weakens the answer."""
    is_quiet, machine = told.machine
    if not is_quiet:
        yield machine
    if told.sides and not differences(told.sides):
        yield "No difference was found between the code of the sides."


def _waiting(told: Told) -> Iterator[str]:
    """Yield for each timing at which points nobody sees the GPU's time of a side, because the host needs longer."""
    of_timings = grouped(told.changes, lambda each: each.point.timing)
    for verdicts in of_timings.values():
        sides = [[row for row in (each.base, each.new) if row.get("host_s") and launch_bound(row)] for each in verdicts]
        number = sum(map(bool, sides))
        where = f"At {share_of(number, len(verdicts))} points" if verdicts[1:] else "Here"
        yield from bound_by_host([row for rows in sides for row in rows], where, of_timings)


def _columns(told: Told) -> list[Column]:
    columns = [
        Column("speed-up", lambda of: _ratio(of.ratio) if of.ratio.is_known else ""),
        VERDICT,
        Column(told.before, lambda of: time(of.base), right),
        Column(told.after, lambda of: time(of.new), right),
        Column(f"memory {told.before}", lambda of: units.size(of.base.get("memory_bytes")), right, rank=2),
        Column(f"memory {told.after}", lambda of: units.size(of.new.get("memory_bytes")), right, rank=2),
        Column("replicates", lambda of: str(of.new.get("processes") or ""), right, rank=3),
    ]
    return [*([Column("point", told.label)] if len(told.changes) > 1 else []), *columns]


def _opposed(told: Told) -> Iterator[str]:
    """Yield at which points the medians contradict the speed-up, and which of them counts."""
    if opposed := [each for each in told.changes if is_opposed(each.new, each.base)]:
        yield (
            f"The times{told.at(opposed)} contradict the speed-up: they are medians of all rounds, between which the "
            "machine's speed moved. The speed-up compares within each round, and counts."
        )


def _failures(told: Told) -> Iterator[str]:
    """Yield which side is different, or has no time at a point, and why."""
    for each in told.changes:
        for name, row in ((told.before, each.base), (told.after, each.new)):
            if len(told.changes) > 1 and row.get("status") not in ("ok", "skipped", None):
                yield f"{told.label(each)}: {name}: {reason(row)}"


def _facts(told: Told) -> Iterator[str]:
    """Yield what belongs to the answer: `what: …`."""
    yield "speed-up: with its 99 % interval, from rounds in pairs; times are medians, so their quotient may differ"
    yield from _kernels(told)
    yield from _function(told)
    yield from _code(told)
    identity = told.here.identity
    software = f"Python {identity['python']}, torch {identity['torch']}"
    gpus = dict.fromkeys(
        told.here.device_name(each.point.device) for each in told.changes if each.point.kind is not CPU
    )
    yield f"machine: {', '.join([*gpus, identity['cpu']])}, {identity['cores']} cores, {software}"
    if commit := told.here.context.get("commit"):
        yield f"attention-bench: commit {commit}"
    is_quiet, machine = told.machine
    if is_quiet and machine:
        yield f"control: {machine}"


def _kernels(told: Told) -> Iterator[str]:
    timed = [each for each in told.changes if {each.base.get("status"), each.new.get("status")} == {"ok"}]
    pairs = Counter((_listed(each.base), _listed(each.new)) for each in timed)
    for (old, new), count in pairs.items():
        where = f" ({count} of {len(told.changes)} points)" if len(pairs) > 1 else ""
        gone, come, kept = ([each for each in of if (each in among) is is_in] for of, among, is_in in (
            (old, new, False), (new, old, False), (new, old, True)
        ))  # fmt: skip
        parts = [f"{name} {', '.join(own)}" for name, own in ((told.before, gone), (told.after, come)) if own]
        kept.sort(key=lambda name: "attention" not in name)  # that of the core comes first
        both = f"in both {', '.join(kept[:MOST_KERNELS])}{' …' if kept[MOST_KERNELS:] else ''}" if kept else ""
        yield f"kernels{where}: {'; '.join([*parts, *([both] if both else [])]) or 'none seen'}"


def _listed(row: Row) -> tuple[str, ...]:
    return tuple(each for each in (row.get("kernels") or "").split(";") if each)


def _function(told: Told) -> Iterator[str]:
    if told.weights is None:
        yield "function: the sides are two layers or models, and nothing is said about their outputs"
    elif told.weights == DIFFER:
        yield f"function: {UNCOMPARED}"
    elif any(each.verdict != NOT_MEASURED for each in told.changes):
        what = "outputs and gradients" if told.changes[0].point.mode != "inference" else "outputs"
        errors = [(each.new["error"], each.new["tolerance"]) for each in told.changes if each.new.get("error")]
        error, tolerance = max(errors, key=lambda pair: pair[0] / pair[1], default=(None, None))
        figures = f": largest error {error:.1g}, tolerance {tolerance:.1g}" if error and tolerance else ""
        yield f"function: {what} were judged by those of {told.before} in float64, with the same weights{figures}"


def _code(told: Told) -> Iterator[str]:
    """Yield where the code of each side comes from."""
    for name, side in told.sides.items():
        given = side["given"]
        asked = ", ".join(given[key] for key in ("layer", "checkout") if key in given) or given["implementation"]
        yield f"{name}: {asked}; {', '.join(['torch ' + side['torch'], *_packages(side)])}"


def _packages(side: Mapping[str, Any]) -> Iterator[str]:
    """Yield the packages of a side that its names name, or that git has."""
    given = [side["given"].get(name, "") for name in ("layer", "implementation")]
    named = {name_of(name).module.partition(".")[0] for name in given if name}
    for name, of in side["packages"].items():
        if name in named or of["commit"]:
            yield " ".join(filter(None, (name, of["version"], of["commit"] and f"(commit {of['commit']})")))


def differences(sides: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return in what the code of two sides differs: what was asked for, torch, Python and the sources of packages."""
    first, second = sides.values()
    own = [key for key in ("layer", "implementation") if first["given"].get(key) != second["given"].get(key)]
    own += [key for key in ("torch", "python") if first[key] != second[key]]
    digests = [{name: of["digest"] for name, of in side["packages"].items()} for side in (first, second)]
    packages = sorted({*digests[0], *digests[1]})
    return [*own, *(name for name in packages if digests[0].get(name) != digests[1].get(name))]


def as_json(told: Told) -> str:
    """Return a duel as JSON; a number that is not known is null."""
    points = [
        {
            "point": {name: value for name, value in vars(each.point).items() if value is not None},
            "verdict": each.verdict,
            **intervals.as_numbers("speedup", each.ratio),
            "memory_ratio": intervals.finite(each.memory),
            BEFORE: _row(each.base),
            AFTER: _row(each.new),
        }
        for each in told.changes
    ]
    content = {
        "headline": headline(told),
        "verdict": told.verdict,
        "allow": told.allow,
        "allowed": told.allowed,
        "bound": told.bound,
        BEFORE: told.before,
        AFTER: told.after,
        "weights": told.weights,
        "points": points,
        "sides": told.sides,
        "machine": told.here.identity,
        "command": told.command,
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _row(row: Row) -> dict[str, Any]:
    names = ("status", "detail", "latency_s", "memory_bytes", "processes")
    return {**{name: row.get(name) for name in names}, "kernels": [*_listed(row)]}
