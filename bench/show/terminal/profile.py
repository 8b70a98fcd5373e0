"""Profiles in the terminal: time and memory of a case by operator and by stage, and how two profiles differ."""

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from bench.analyse import profile as analyse
from bench.plan.case import Case
from bench.show.blocks import BAD, GAP, GOOD, HEAD, PLAIN, QUIET, WARNING, Block, Column, Lines, Table, of_texts, right
from bench.show.rows import Row, by_point
from bench.show.text import counted, differences, parts, shared, varying
from bench.store import units
from bench.store.profile import BACKWARD, KERNEL, OPERATOR, Operator, Profile

TOP = 10
"""Operators that are shown by default; those after them are mostly bookkeeping."""

PERCENT = 100

TONES = {analyse.APPEARED: BAD, analyse.GREW: BAD, analyse.VANISHED: GOOD, analyse.SHRANK: GOOD}
"""The tones of how an operator changed; the words say it too."""

KINDS = {OPERATOR: "operator", KERNEL: "GPU kernel"}

WITHIN, ARROW = " > ", " → "


def row_of(table: pd.DataFrame, case: Case) -> Row | None:
    """Return the row of a case in the results of its run, None if the run didn't measure it."""
    rows = by_point(table).get(case.point, [])
    return next((row for row in rows if row["implementation"] == case.implementation), None)


def blocks(profile: Profile, row: Row | None, top: int = TOP) -> list[Block]:
    """Return a profile's times, operators and stages; `row` is the case's row in the run's results."""
    stages = [GAP, *_stages(profile)] if profile.stages else []
    return [*_times(profile, row), GAP, _operators(profile, top), *stages]


def _times(profile: Profile, row: Row | None) -> Iterator[Lines]:
    case, share, factor = profile.case, analyse.overhead(profile), None
    where = "not measured in the run"
    if row is not None and row["latency_s"] is not None:
        times = row["latency_s"], row["latency_low_s"], row["latency_high_s"]
        latency, *ends = map(units.seconds, times)
        interval = f" [{', '.join(ends)}]" if None not in times else ""
        where = f"{latency}{interval} in the run"
        if row["env_id"] in (None, profile.origin.env_id):
            factor = analyse.slowdown(profile, *times)
        else:
            where += ", on another machine or software"
    timed, profiled = units.seconds(profile.timed_s), units.seconds(profile.profiled_s)
    yield Lines([" · ".join([case.implementation, *parts(case.point)])], HEAD)
    yield Lines([f"latency {timed}, under the profiler {profiled} ({_signed(share)}); {where}"])
    warnings = []
    if factor:
        warnings.append(
            f"Without the profiler too a call takes {factor:.2g} times as long here as in the run: it is another time, "
            "at which the machine may run at another speed or be busy, and the case is alone in its process. "
            "Compare times of this profile with each other, not with the run's."
        )
    if distorted := analyse.distortion(profile):
        warnings.append(distorted)
    yield Lines(warnings, WARNING)


def _operators(profile: Profile, top: int) -> Table:
    on_gpu = any(operator.device_s is not None for operator in profile.operators)
    pairs = list(zip(profile.operators, analyse.shares(profile), strict=True))
    rows = [[operator.name, *_cells([operator], share, on_gpu)] for operator, share in pairs[:top]]
    if rest := pairs[top:]:
        cells = _cells([operator for operator, _ in rest], sum(share for _, share in rest), on_gpu)
        rows.append([counted([len(rest)], "other", "others"), *cells[:-1], ""])
    if not on_gpu:
        rows.append(["in no operator", units.seconds(analyse.unnamed_s(profile)), *[""] * 6])
    numbers = ["GPU time" if on_gpu else "time", "share", "calls", "allocated", "FLOP/s", "host time"]
    names = {operator.name for operator in profile.operators}
    return of_texts(
        ["operator", *numbers, "kernels"], rows, numbers=numbers, tone=lambda row: PLAIN if row[0] in names else QUIET
    )


def _cells(operators: Sequence[Operator], share: float, on_gpu: bool) -> list[str]:
    """Return what operators took together; the host's time and the kernels only of those on a GPU."""
    with_flops = [operator for operator in operators if operator.flops is not None]
    flops, worked_s = sum(operator.flops or 0 for operator in with_flops), sum(map(analyse.time_s, with_flops))
    kernels = dict.fromkeys(kernel for operator in operators for kernel in operator.kernels)
    return [
        units.seconds(sum(map(analyse.time_s, operators))),
        units.percent(share),
        units.count(sum(operator.calls for operator in operators)),
        units.size(sum(operator.allocated_bytes for operator in operators)),
        units.rate(flops / worked_s if worked_s else None, "FLOP/s"),
        units.seconds(sum(operator.self_s for operator in operators)) if on_gpu else "",
        ", ".join(kernels) if on_gpu else "",
    ]


def _stages(profile: Profile) -> Iterator[Block]:
    rows = [
        (
            f"{stage.name}, {BACKWARD}" if stage.direction == BACKWARD else stage.name,
            units.seconds(stage.time_s),
            units.percent(share),
            units.rate(analyse.rate(stage), "FLOP/s"),
            "" if stage.moved_bytes is None else units.size(stage.moved_bytes),
            units.size(stage.allocated_bytes),
        )
        for stage, share in zip(profile.stages, analyse.stage_shares(profile), strict=True)
    ]
    numbers = ("time", "share", "FLOP/s", "moved at least", "allocated")
    yield of_texts(["stage", *numbers], rows, numbers=numbers)
    residual_s = analyse.residual_s(profile)
    whole, stages = units.seconds(profile.timed_s), units.seconds(analyse.stage_sum_s(profile))
    share = _signed(residual_s / profile.timed_s)
    yield Lines([f"stages {stages} of {whole}; residual {units.seconds(residual_s)} ({share})"])


def _signed(share: float) -> str:
    return f"{PERCENT * share:+.1f}%"


def difference_blocks(a: Profile, b: Profile, top: int) -> list[Block]:
    """Return the difference of two profiles: their cases, what costs most, and the `top` changes."""
    changes = analyse.difference(a, b)
    tables = [
        _changes_table(kind, of, top) for kind in KINDS if (of := [each for each in changes if each.kind == kind])
    ]
    title = Lines([shared([a.case.point, b.case.point])], HEAD)
    return [title, Lines([*_sides(a, b), *headline(changes)]), *tables, Lines(_legend(a, b))]


def headline(changes: Sequence[analyse.Change]) -> list[str]:
    """Return in words the most expensive certain change, and a larger one if only its time shows it."""
    changed = [change for change in changes if change.kind == OPERATOR and change.became != analyse.UNCHANGED]
    if not changed:
        return ["Nothing appeared, vanished, grew or shrank."]
    certain = [change for change in changed if change.is_certain]
    lines = [f"What costs most: {words(certain[0], changes)}."] if certain else []
    if not changed[0].is_certain:
        lines.append(
            f"{'More, but' if certain else 'What costs most,'} by its time alone: {words(changed[0], changes)}."
        )
    return lines


def words(change: analyse.Change, changes: Sequence[analyse.Change]) -> str:
    """Return one of the changes in words: `aten::copy_ grew from 2 to 3 calls, +0.21 ms, in aten::clone`.

    If the operator allocates nothing itself, they say what its caller allocates.
    """
    phrases = [
        f"{change.name} {_calls(change)}",
        _change(units.seconds, change.time_s),
        _change(units.size, change.allocated_bytes),
    ]
    callers = [chain for chain in change.callers if chain]
    if callers:
        around_bytes = sum(each.allocated_bytes for each in changes if each.is_within(callers[0]))
        size = "" if change.allocated_bytes else _change(units.size, around_bytes)
        phrases.append(f"in {WITHIN.join(callers[0])}{f' with {size}' if size else ''}")
    return ", ".join(filter(None, phrases))


def _sides(a: Profile, b: Profile) -> list[str]:
    """Return the case and time per call of each side, and how their origins differ."""
    columns = varying([a.case.point, b.case.point])
    lines = []
    for side, of in (("A", a), ("B", b)):
        what = " ".join(filter(None, (of.case.implementation, differences(of.case.point, columns))))
        timed, profiled = units.seconds(of.timed_s), units.seconds(of.profiled_s)
        lines.append(f"{side}: {what}, {timed} a call, {profiled} under the profiler")
    unlike = [_pair(old, new) for old, new in zip(_origin(a), _origin(b), strict=True) if old != new]
    return [*lines, *([f"from A to B: {'; '.join(unlike)}"] if unlike else [])]


def _origin(of: Profile) -> tuple[str, ...]:
    return of.origin.device_name, f"torch {of.origin.torch_version}", f"commit {of.origin.commit}"


def _changes_table(kind: str, changes: Sequence[analyse.Change], top: int) -> Table:
    """Return the changes of a kind; a row is a name, what became of it, and the change. Of sums the second is empty."""
    changed = [change for change in changes if change.became != analyse.UNCHANGED]
    named = [(each.name, f"{each.became}{f' by {each.by}' if each.by else ''}", each) for each in changed[:top]]
    sums = {
        f"{len(changed[top:])} smaller changes": changed[top:],
        "unchanged": [change for change in changes if change.became == analyse.UNCHANGED],
        "all": changes,
    }
    columns = [
        Column(KINDS[kind], lambda row: row[0], tone=lambda row: PLAIN if row[1] else QUIET, folds=True),
        Column("became", lambda row: row[1], tone=lambda row: TONES.get(row[2].became, PLAIN)),
        Column("calls", lambda row: _pair(*(units.count(cost.calls) for cost in _costs(row))), right),
        Column("time", lambda row: _pair(*(units.seconds(cost.time_s or None) or "0" for cost in _costs(row))), right),
        Column("change", lambda row: _change(units.seconds, row[2].time_s), right),
        Column("allocated", lambda row: _sizes(*(cost.allocated_bytes for cost in _costs(row))), right),
        Column("change", lambda row: _change(units.size, row[2].allocated_bytes), right),
        Column("called in", lambda row: _callers(row[2]), folds=True),
    ]
    return Table(columns, [*named, *((text, "", analyse.together(of)) for text, of in sums.items() if of)])


def _costs(row: tuple[str, str, analyse.Change]) -> tuple[analyse.Cost, analyse.Cost]:
    return row[2].before, row[2].after


def _sizes(before: float, after: float) -> str:
    return _pair(*(units.size(size) if size else "0" for size in (before, after))) if before or after else ""


def _callers(change: analyse.Change) -> str:
    first, *others = change.callers or ((),)
    return WITHIN.join(first) + (f" and {len(others)} more" if others else "")


def _pair(old: str, new: str) -> str:
    return old if old == new else f"{old}{ARROW}{new}"


def _calls(change: analyse.Change) -> str:
    old, new = (units.count(cost.calls) for cost in (change.before, change.after))
    if change.by == analyse.CALLS:
        return f"{change.became} from {old} to {new} calls"
    number = old if change.became == analyse.VANISHED else new
    by = f" by {change.by} in" if change.by else ":"
    return f"{change.became}{by} {number} {'call' if number == '1' else 'calls'}"


def _change(write: Callable[[float], str], value: float) -> str:
    """Return a change with its sign, empty for none."""
    return f"{value:+}"[0] + write(abs(value)) if value else ""


def _legend(a: Profile, b: Profile) -> list[str]:
    margin, worth = units.percent(analyse.TIME_MARGIN), units.percent(analyse.TIME_WORTH, trim=True)
    calls = counted([a.calls, b.calls], "call", "calls")
    return [
        "grew, shrank: by calls, which are exact; if those are the same, by bytes, exact too; else by time, "
        f"beyond {margin} of its own and {worth} of all",
        f"a time is the mean over {calls} in one profile, without an interval: compare and duel judge times",
    ]
