"""The output of a duel: whether the second side may replace the first, and the facts for a pull request."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.analyse.change import Change
from bench.analyse.duel import Outcome
from bench.analyse.flags import launch_bound
from bench.analyse.rows import Row
from bench.plan.case import AFTER, BEFORE
from bench.plan.device import CPU, HOST
from bench.plan.sides import SAME
from bench.plan.verdicts import DIFFERENT, EQUIVALENT, FASTER, LOST, NOT_MEASURED, OF_SIDES, OPEN, SLOWER
from bench.show import intervals
from bench.show.answer import bound_by_host
from bench.show.blocks import BAD, HEAD, PLAIN, QUIET, WARNING, Block, Code, Column, Folded, Lines, Table, right
from bench.show.comparison.changes import VERDICT, labels
from bench.show.rows import reason, time
from bench.show.text import capital, memory_setting, share_of, shared
from bench.stats.estimates import Interval
from bench.store import units
from impls.catalogue import name_of

DECIMALS = 3
"""The most decimals of a ratio, enough to distinguish changes of less than a percent."""

SAME_MEMORY = 0.01
"""A smaller difference in memory counts as the same memory."""

WORDS = {
    FASTER: "faster than {before}",
    EQUIVALENT: "not slower than {before} by more than {bound}",
    SLOWER: "slower than {before}",
    OPEN: "not decided",
    NOT_MEASURED: "not measured",
    DIFFERENT: "different from {before}",
}
"""The words of each verdict on the second side."""

UNCOMPARED = "weights differ, so outputs were not compared"
"""The words for sides of the same layer whose weights differ in names or shapes."""

LEGEND = "Times are medians of all rounds; the speed-up compares within each round (99% confidence)."


def blocks(of: Outcome, command: str, doubts: Sequence[str] = ()) -> Iterator[Block]:
    """Yield the output of a duel, the answer first; a comment on a pull request collapses the facts.

    `command` measures it again. `doubts` are sentences about its numbers.
    """
    yield Lines([headline(of)], HEAD)
    yield Lines([*_allowed(of)], BAD if of.is_bad else PLAIN)
    yield Lines([*doubts, *_same_code(of)], WARNING)
    yield Lines([*_launch_bound(of), shared({each.point for each in of.changes})])
    yield Table(_columns(of), of.changes)
    yield Lines(_legend(of), QUIET)
    yield Lines([*_failures(of)], BAD, is_list=True)
    facts = Lines([*_facts(of)], is_list=True, is_foreign=True)  # the @main of a checkout is not a user
    yield Folded("Kernels, versions, machine", Code([]), facts)
    yield Folded("Again", Code([command], "sh"))


def headline(of: Outcome) -> str:
    """Return a sentence that says whether the second side may replace the first."""
    answer = _answer(of)
    answer = capital(answer) if of.after == AFTER or of.verdict == OPEN else f"{of.after} is {answer}"
    return f"{answer}. {capital(UNCOMPARED)}" if of.is_uncompared else answer


def _answer(of: Outcome) -> str:
    worst, count = of.worst, len(of.changes)
    number = Counter(each.verdict for each in of.changes)
    where = f" at {share_of(number[worst.verdict], count)} points" if count > 1 else ""
    said, ratio = f"{_said(worst.verdict, of)}{where}", _ratio(worst.ratio)
    if worst.verdict in LOST:
        return f"{said}: {_cause(worst, of)}"
    if worst.verdict == OPEN:
        said = f"{said} after {units.duration(of.spent_s)}"
        ratio = f"{of.after} is {ratio} as fast as {of.before}"
    if count == 1:
        return f"{said}: {ratio}{_memory(worst)}"
    others = [
        f"{_said(kind, of)} at {number[kind]}" for kind in reversed(OF_SIDES) if number[kind] and kind != worst.verdict
    ]
    before_ratio = ": " if worst.verdict == OPEN else ", at worst "
    return "; ".join([f"{said}{before_ratio}{ratio} at {labels(of.changes)(worst)}", *others])


def _said(verdict: str, of: Outcome) -> str:
    return WORDS[verdict].format(before=of.before, bound=_exact(of.bound))


def _cause(change: Change, of: Outcome) -> str:
    """Return why a change has no ratio, with the name of the side without a time."""
    is_first = change.new.get("status") in ("skipped", None)
    name, row = (of.before, change.base) if is_first else (of.after, change.new)
    why = reason(row) if row else ""
    is_named = change.verdict == DIFFERENT or why.startswith(f"{name} ")
    return (why if is_named else f"{name}: {why}") if why else "no replicate has both sides"


def _ratio(of: Interval) -> str:
    return intervals.ratio(of, DECIMALS)


def _exact(share: float) -> str:
    """Return a requested share exactly: `1.25%`."""
    return f"{100 * share:.4g}%"


def _memory(of: Change) -> str:
    change = of.memory - 1
    if math.isnan(change):
        return ""
    if abs(change) < SAME_MEMORY:
        return "; the same memory"
    return f"; {units.percent(abs(change))} {'more' if change > 0 else 'less'} memory"


def _allowed(of: Outcome) -> Iterator[str]:
    """Yield whether the second side is within the allowed slowdown, and what may decide it."""
    if of.allow is not None and of.allowed:
        points = ", ".join(filter(None, map(labels(of.changes), of.unmet)))
        unknown = ", because outputs must be compared" if of.is_uncompared else ""
        yield f"At most {_exact(of.allow)} slower is allowed: {of.allowed}{f' at {points}' * bool(points)}{unknown}"
    if of.is_undecided:
        yield "A longer --within may decide."


def _same_code(of: Outcome) -> list[str]:
    """Return a sentence if both sides have the same code."""
    if not of.sides or len({*map(_code, of.sides.values())}) > 1:
        return []
    return ["Both sides have the same code."]


def _code(side: Mapping[str, Any]) -> str:
    """Return the identity of a side's code: its names, torch, Python, and the sources of packages."""
    given = {name: side["given"].get(name) for name in ("layer", "implementation")}
    sources = {name: package["digest"] for name, package in side["packages"].items()}
    return json.dumps([given, side["torch"], side["python"], sources], sort_keys=True)


def _launch_bound(of: Outcome) -> Iterator[str]:
    """Yield a line if callers of some sides wait for the host, not for the GPU."""
    on_device = [each for each in of.changes if each.point.timing != HOST]
    rows = [row for each in on_device for row in (each.base, each.new) if row.get("host_s") and launch_bound(row)]
    where = "At some points" if len(of.changes) > 1 else "Here"
    yield from bound_by_host(rows, where, {each.point.timing for each in of.changes})


def _columns(of: Outcome) -> list[Column]:
    def speedup(change: Change) -> str:
        return _ratio(change.ratio) if change.ratio.is_known else ""

    columns = [
        VERDICT,
        Column("speed-up", speedup),
        Column(of.before, lambda each: _time(each.base), right),
        Column(of.after, lambda each: _time(each.new), right),
        Column(f"memory {of.before}", lambda each: units.size(each.base.get("memory_bytes")), right, rank=2),
        Column(f"memory {of.after}", lambda each: units.size(each.new.get("memory_bytes")), right, rank=2),
        Column("replicates", lambda each: str(each.new.get("processes") or ""), right, rank=3),
    ]
    return [*([Column("point", labels(of.changes))] if len(of.changes) > 1 else []), *columns]


def _time(row: Row) -> str:
    return "not timed" if row.get("status") == "skipped" else time(row)


def _legend(of: Outcome) -> list[str]:
    """Return the meaning of the table's numbers, if it has any."""
    timed = [each.point for each in of.changes if each.ratio.is_known]
    return [LEGEND, *memory_setting(timed)] if timed else []


def _failures(of: Outcome) -> Iterator[str]:
    """Yield why a side has no time, unless the headline says so."""
    label, has_many = labels(of.changes), len(of.changes) > 1
    for each in of.changes:
        for name, row in ((of.before, each.base), (of.after, each.new)):
            status, named = row.get("status"), f"{label(each)}: {name}" if has_many else name
            if status == "skipped" and each.verdict != DIFFERENT:
                yield f"{named} was not timed: {reason(row)}"
            elif has_many and status not in ("ok", "skipped", None):
                yield f"{named}: {reason(row)}"


def _facts(of: Outcome) -> Iterator[str]:
    """Yield the facts behind the answer: `name: …`."""
    yield from _kernels(of)
    yield from _outputs(of)
    for name, side in of.sides.items():
        given = side["given"]
        asked = ", ".join(given[key] for key in ("layer", "checkout") if key in given) or given["implementation"]
        yield f"{name}: {asked}; {', '.join(['torch ' + side['torch'], *_packages(side)])}"
    identity, devices = of.here.identity, {each.point.device: each.point.kind for each in of.changes}
    gpus = dict.fromkeys(of.here.device_name(device) for device, kind in devices.items() if kind is not CPU)
    software = f"Python {identity['python']}, torch {identity['torch']}"
    yield f"machine: {', '.join([*gpus, identity['cpu']])}, {identity['cores']} cores, {software}"


def _kernels(of: Outcome) -> Iterator[str]:
    """Yield the kernels that only one side ran."""
    timed = [each for each in of.changes if each.ratio.is_known]
    before = dict.fromkeys(kernel for each in timed for kernel in _listed(each.base))
    after = dict.fromkeys(kernel for each in timed for kernel in _listed(each.new))
    for name, own, other in ((of.before, before, after), (of.after, after, before)):
        if alone := [kernel for kernel in own if kernel not in other]:
            yield f"kernels only in {name}: {', '.join(alone)}"


def _listed(row: Row) -> list[str]:
    return [each for each in (row.get("kernels") or "").split(";") if each]


def _outputs(of: Outcome) -> Iterator[str]:
    """Yield the error of the second side's outputs at the point where it is nearest to the tolerance."""
    if of.weights is None:
        yield "outputs: not compared, because the sides have different layers"
    errors = [(each.new["error"], each.new["tolerance"]) for each in of.changes if each.new.get("error")]
    if of.weights == SAME and errors:
        error, tolerance = max(errors, key=lambda pair: pair[0] / pair[1])
        yield f"outputs: largest error {error:.1g}, tolerance {tolerance:.1g}, against {of.before} in float64"


def _packages(side: Mapping[str, Any]) -> Iterator[str]:
    """Yield the packages of a side that its names contain, or that have a commit."""
    given = [side["given"].get(name, "") for name in ("layer", "implementation")]
    named = {name_of(name).module.partition(".")[0] for name in given if name}
    for name, of in side["packages"].items():
        if name in named or of["commit"]:
            yield " ".join(filter(None, (name, of["version"], of["commit"] and f"(commit {of['commit']})")))


def as_json(of: Outcome, command: str) -> str:
    """Return a duel as JSON; unknown numbers are null."""
    points = [
        {
            "point": {name: value for name, value in vars(each.point).items() if value is not None},
            "verdict": each.verdict,
            **intervals.as_numbers("speedup", each.ratio),
            "memory_ratio": intervals.finite(each.memory),
            BEFORE: _row(each.base),
            AFTER: _row(each.new),
        }
        for each in of.changes
    ]
    content = {
        "headline": headline(of),
        "verdict": of.verdict,
        "allow": of.allow,
        "allowed": of.allowed,
        "bound": of.bound,
        BEFORE: of.before,
        AFTER: of.after,
        "weights": of.weights,
        "points": points,
        "sides": of.sides,
        "machine": of.here.identity,
        "command": command,
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _row(row: Row) -> dict[str, Any]:
    names = ("status", "detail", "latency_s", "memory_bytes", "processes")
    return {**{name: row.get(name) for name in names}, "kernels": _listed(row)}
