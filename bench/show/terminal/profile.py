"""A profile in the terminal: time and memory of a case by operator and by stage."""

from collections.abc import Iterator, Sequence

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.profile import (
    HEAVY,
    overhead,
    rate,
    residual_s,
    shares,
    slowdown,
    stage_shares,
    stage_sum_s,
    time_s,
    unnamed_s,
)
from bench.analyse.profile_difference import (
    APPEARED,
    CALLS,
    GREW,
    SHRANK,
    TIME_MARGIN,
    TIME_WORTH,
    UNCHANGED,
    VANISHED,
    Change,
    difference,
    together,
)
from bench.plan.case import Case
from bench.show.rows import Row, by_point
from bench.show.terminal.console import BAD, GOOD, QUIET, WARNING, table
from bench.show.text import counted, differences, parts, shared, varying
from bench.store import units
from bench.store.profile import BACKWARD, KERNEL, OPERATOR, Operator, Profile

TOP = 10
"""Operators that are shown by default; those after them are mostly bookkeeping."""

PERCENT = 100


STYLES = {APPEARED: BAD, GREW: BAD, VANISHED: GOOD, SHRANK: GOOD}
"""Styles of how an operator changed; the words say it too."""

KINDS = {OPERATOR: "operator", KERNEL: "GPU kernel"}

WITHIN, ARROW = " > ", " → "


def row_of(table: pd.DataFrame, case: Case) -> Row | None:
    """Return the row of a case in the results of its run, None if the run didn't measure it."""
    rows = by_point(table).get(case.point, [])
    return next((row for row in rows if row["implementation"] == case.implementation), None)


def render(profile: Profile, row: Row | None, top: int = TOP) -> RenderableType:
    """Return a profile's times, operators and stages; `row` is the case's row in the run's results."""
    stages = [Text(), *_stages(profile)] if profile.stages else []
    return Group(*_times(profile, row), Text(), _operators(profile, top), *stages)


def _times(profile: Profile, row: Row | None) -> Iterator[Text]:
    case, share = profile.case, overhead(profile)
    yield Text(" · ".join([case.implementation, *parts(case.point)]), "bold")
    yield Text(
        f"latency {units.seconds(profile.timed_s)}, under the profiler {units.seconds(profile.profiled_s)} "
        f"({_signed(share)}); {_in_the_run(profile, row)}"
    )
    if row is not None and (factor := _slowdown(profile, row)):
        yield Text(
            f"Without the profiler too a call takes {factor:.2g} times as long here as in the run: it is another time, "
            "at which the machine may run at another speed or be busy, and the case is alone in its process. "
            "Compare times of this profile with each other, not with the run's.",
            WARNING,
        )
    if share > HEAVY:
        yield Text(
            f"The profiler slows it down by more than {HEAVY:.0%}: trust counts, bytes and the order of operators, "
            "not their times. A larger batch or more tokens make operators outlast their recording.",
            WARNING,
        )


def _slowdown(profile: Profile, row: Row) -> float | None:
    if row["latency_s"] is None or _elsewhere(profile, row):
        return None
    return slowdown(profile, row["latency_s"], row["latency_low_s"], row["latency_high_s"])


def _elsewhere(profile: Profile, row: Row) -> bool:
    return row["env_id"] is not None and row["env_id"] != profile.origin.env_id


def _in_the_run(profile: Profile, row: Row | None) -> str:
    if row is None or row["latency_s"] is None:
        return "not measured in the run"
    ends = [row["latency_low_s"], row["latency_high_s"]]
    interval = f" [{', '.join(map(units.seconds, ends))}]" if None not in ends else ""
    other = ", on another machine or software" if _elsewhere(profile, row) else ""
    return f"{units.seconds(row['latency_s'])}{interval} in the run{other}"


def _operators(profile: Profile, top: int) -> Table:
    on_gpu = any(operator.device_s is not None for operator in profile.operators)
    titles = ["GPU time" if on_gpu else "time", "share", "calls", "allocated", "FLOP/s", *["host time"] * on_gpu]
    lines = table("operator", numbers=titles)
    if on_gpu:
        lines.add_column("kernels", overflow="fold")
    operators = list(zip(profile.operators, shares(profile), strict=True))
    for operator, share in operators[:top]:
        lines.add_row(operator.name, *_cells([operator], share), *_on_gpu([operator]) * on_gpu)
    rest = operators[top:]
    if rest:
        others, share = [operator for operator, _ in rest], sum(share for _, share in rest)
        name = counted([len(rest)], "other", "others")
        lines.add_row(name, *_cells(others, share), *_on_gpu(others)[:1] * on_gpu, style=QUIET)
    if not on_gpu:
        lines.add_row("in no operator", units.seconds(unnamed_s(profile)), style=QUIET)
    return lines


def _cells(operators: Sequence[Operator], share: float) -> list[str]:
    spent_s = sum(time_s(operator) for operator in operators)
    counted_flops = [operator for operator in operators if operator.flops is not None]
    flops = sum(operator.flops or 0 for operator in counted_flops)
    worked_s = sum(time_s(operator) for operator in counted_flops)
    return [
        units.seconds(spent_s),
        units.percent(share),
        units.count(sum(operator.calls for operator in operators)),
        units.size(sum(operator.allocated_bytes for operator in operators)),
        units.rate(flops / worked_s if worked_s else None, "FLOP/s"),
    ]


def _on_gpu(operators: Sequence[Operator]) -> list[str]:
    kernels = dict.fromkeys(kernel for operator in operators for kernel in operator.kernels)
    return [units.seconds(sum(operator.self_s for operator in operators)), ", ".join(kernels)]


def _stages(profile: Profile) -> Iterator[RenderableType]:
    lines = table("stage", numbers=["time", "share", "FLOP/s", "moved at least", "allocated"])
    for stage, share in zip(profile.stages, stage_shares(profile), strict=True):
        lines.add_row(
            f"{stage.name}, {BACKWARD}" if stage.direction == BACKWARD else stage.name,
            units.seconds(stage.time_s),
            units.percent(share),
            units.rate(rate(stage), "FLOP/s"),
            "" if stage.moved_bytes is None else units.size(stage.moved_bytes),
            units.size(stage.allocated_bytes),
        )
    yield lines
    share = residual_s(profile) / profile.timed_s
    yield Text(
        f"stages {units.seconds(stage_sum_s(profile))} of {units.seconds(profile.timed_s)}; "
        f"residual {units.seconds(residual_s(profile))} ({_signed(share)})"
    )


def _signed(share: float) -> str:
    return f"{PERCENT * share:+.1f}%"


def render_difference(a: Profile, b: Profile, top: int) -> RenderableType:
    """Return the difference of two profiles for rich: their cases, what costs most, and the `top` changes."""
    changes = difference(a, b)
    tables = [
        _changes_table(kind, of, top) for kind in KINDS if (of := [each for each in changes if each.kind == kind])
    ]
    lines = (*_sides(a, b), *headline(changes))
    return Group(
        Text(shared([a.case.point, b.case.point]), "bold"), *map(Text, lines), *tables, *map(Text, _legend(a, b))
    )


def headline(changes: Sequence[Change]) -> list[str]:
    """Return in words the most expensive certain change, and a larger one if only its time shows it."""
    changed = [change for change in changes if change.kind == OPERATOR and change.became != UNCHANGED]
    if not changed:
        return ["Nothing appeared, vanished, grew or shrank."]
    certain = [change for change in changed if change.is_certain]
    lines = [f"What costs most: {words(certain[0], changes)}."] if certain else []
    if not changed[0].is_certain:
        lines.append(
            f"{'More, but' if certain else 'What costs most,'} by its time alone: {words(changed[0], changes)}."
        )
    return lines


def words(change: Change, changes: Sequence[Change]) -> str:
    """Return one of the changes in words: `aten::copy_ grew from 2 to 3 calls, +0.21 ms, in aten::clone`.

    If the operator allocates nothing itself, they say what its caller allocates.
    """
    phrases = [f"{change.name} {_calls(change)}", _seconds(change.time_s), _size(change.allocated_bytes)]
    callers = [chain for chain in change.callers if chain]
    if callers:
        around_bytes = sum(each.allocated_bytes for each in changes if each.is_within(callers[0]))
        size = "" if change.allocated_bytes else _size(around_bytes)
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


def _changes_table(kind: str, changes: Sequence[Change], top: int) -> Table:
    lines = table(KINDS[kind], ["became"], ["calls", "time", "change", "allocated", "change"])
    lines.add_column("called in", overflow="fold")
    changed = [change for change in changes if change.became != UNCHANGED]
    for change in changed[:top]:
        by = f" by {change.by}" if change.by else ""
        lines.add_row(Text(change.name), Text(f"{change.became}{by}", STYLES[change.became]), *_change_cells(change))
    for text, of in (
        (f"{len(changed[top:])} smaller changes", changed[top:]),
        ("unchanged", [change for change in changes if change.became == UNCHANGED]),
        ("all", changes),
    ):
        if of:
            lines.add_row(Text(text, QUIET), Text(""), *_change_cells(together(of)))
    return lines


def _change_cells(change: Change) -> Iterator[Text]:
    before, after = change.before, change.after
    yield Text(_pair(units.count(before.calls), units.count(after.calls)))
    yield Text(_pair(*(units.seconds(cost.time_s) if cost.time_s else "0" for cost in (before, after))))
    yield Text(_seconds(change.time_s))
    sizes = [units.size(cost.allocated_bytes) if cost.allocated_bytes else "0" for cost in (before, after)]
    yield Text("" if sizes == ["0", "0"] else _pair(*sizes))
    yield Text(_size(change.allocated_bytes))
    first, *others = change.callers or ((),)
    yield Text(WITHIN.join(first) + (f" and {len(others)} more" if others else ""))


def _pair(old: str, new: str) -> str:
    return old if old == new else f"{old}{ARROW}{new}"


def _calls(change: Change) -> str:
    old, new = (units.count(cost.calls) for cost in (change.before, change.after))
    if change.by == CALLS:
        return f"{change.became} from {old} to {new} calls"
    number = old if change.became == VANISHED else new
    by = f" by {change.by} in" if change.by else ":"
    return f"{change.became}{by} {number} {'call' if number == '1' else 'calls'}"


def _seconds(change_s: float) -> str:
    return f"{change_s:+}"[0] + units.seconds(abs(change_s)) if change_s else ""


def _size(change_bytes: float) -> str:
    return f"{change_bytes:+}"[0] + units.size(abs(change_bytes)) if change_bytes else ""


def _legend(a: Profile, b: Profile) -> list[str]:
    margin, worth = units.percent(TIME_MARGIN), units.percent(TIME_WORTH, trim=True)
    calls = counted([a.calls, b.calls], "call", "calls")
    return [
        "grew, shrank: by calls, which are exact; if those are the same, by bytes, exact too; else by time, "
        f"beyond {margin} of its own and {worth} of all",
        f"a time is the mean over {calls} in one profile, without an interval: compare and duel judge times",
    ]
