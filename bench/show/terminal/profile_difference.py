"""Two profiles as a table for the terminal: how each operator changed, the largest change of time first."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.profile import (
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
from bench.show.point_text import counted, differences, shared, varying
from bench.show.terminal.console import BAD, GOOD, QUIET, table
from bench.store import units
from bench.store.profile import KERNEL, OPERATOR, Profile

STYLES = {APPEARED: BAD, GREW: BAD, VANISHED: GOOD, SHRANK: GOOD}
"""Styles of how an operator changed; the words say it too."""

TITLES = {OPERATOR: "operator", KERNEL: "GPU kernel"}

WITHIN, ARROW = " > ", " → "


def render(a: Profile, b: Profile, top: int) -> RenderableType:
    """Return the difference of two profiles for rich: their cases, what costs most, and the `top` changes."""
    changes = difference(a, b)
    tables = [_table(kind, of, top) for kind in TITLES if (of := [each for each in changes if each.kind == kind])]
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


def _table(kind: str, changes: Sequence[Change], top: int) -> Table:
    lines = table(TITLES[kind], ["became"], ["calls", "time", "change", "allocated", "change"])
    lines.add_column("called in", overflow="fold")
    changed = [change for change in changes if change.became != UNCHANGED]
    for change in changed[:top]:
        by = f" by {change.by}" if change.by else ""
        lines.add_row(Text(change.name), Text(f"{change.became}{by}", STYLES[change.became]), *_cells(change))
    for text, of in (
        (f"{len(changed[top:])} smaller changes", changed[top:]),
        ("unchanged", [change for change in changes if change.became == UNCHANGED]),
        ("all", changes),
    ):
        if of:
            lines.add_row(Text(text, QUIET), Text(""), *_cells(together(of)))
    return lines


def _cells(change: Change) -> Iterator[Text]:
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
