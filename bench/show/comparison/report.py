"""A comparison of two runs, all of which has a stamp if it was forced: the headline, the rows, and their data."""

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

import pandas as pd

from bench.analyse.change import WELL, Change
from bench.analyse.standing import FASTEST, NAMED
from bench.plan import verdicts
from bench.plan.again import MOST_COMMANDS, Again
from bench.plan.verdicts import CHANGED, OPEN
from bench.show.blocks import BAD, GAP, HEAD, Block, Code, Column, Folded, Lines, Table, right
from bench.show.comparison.changes import VERDICT, Comparison, counts, time
from bench.show.rows import reason
from bench.show.text import MOST, counted, first, more
from bench.stats.best import GOOD
from bench.stats.limits import Limits
from bench.store import units

STAMP = "NOT COMPARABLE"
"""In every line of a forced comparison, so that no line can be quoted without it."""

ONE_SIDED = (verdicts.MISSING, verdicts.NEW)
"""Verdicts of cases that are in one of the two runs alone."""

EVENTS = (*CHANGED, verdicts.NEWLY_FAILING, verdicts.FIXED)
"""Verdicts of rows that a person should see."""

NEARLY_ALL = 0.9
"""The share of rows for which a bound of changes is said: a few rows are noisy everywhere."""

MOST_CHANGE = 100.0
"""A change of 10,000 % or more is no bound: two processes that differ wildly exclude nothing."""

CLAIM = 10
"""The number of processes that is advised if a side has one."""

MOST_NAMED = 3
"""The number of changed rows that are named, the worst first."""

MOST_ROWS = 1_000
"""The most rows that are listed, the worst."""

SUMMARY = (
    Column("implementation", itemgetter(0), is_code=True),
    Column("rows", itemgetter(1), right),
    Column("middle change", itemgetter(2), right),
    Column("no change above", itemgetter(3), right),
    Column("verdicts", itemgetter(4), rank=1),
)
"""The columns of the table with a line for each implementation."""


@dataclass(frozen=True)
class Report(Comparison):
    """A comparison of two runs with the notes about it.

    `rebased_to` is the implementation that replaced the baseline. `unlike` holds the conditions that differ if the
    comparison was forced, `doubts` a line for each run in which identical code differs too much, `unlike_runs` lines
    about settings that differ, and `notes` lines about both runs. With `shows_all` every row is listed.
    `again` measures single rows as NEW did.
    """

    limits: Limits = field(default_factory=Limits)
    rebased_to: str = ""
    unlike: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    unlike_runs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    shows_all: bool = False
    again: Again = field(default_factory=Again)

    @cached_property
    def rows(self) -> list[Change]:
        """The changes by verdict, worst first, and within a verdict by their ratio, slowest first.

        Those that print the same ratio stay as they are in the table.
        """
        rank = list(verdicts.VERDICTS).index
        return sorted(self.changes, key=lambda of: (rank(of.verdict), round(of.numbers()["change"] or 1, 3)))

    @cached_property
    def judged(self) -> list[Change]:
        """The rows that have a verdict of statistics and an interval."""
        return [change for change in self.rows if change.is_judged]

    @cached_property
    def few_shared(self) -> bool:
        """Whether most cases are in one of the two runs alone."""
        return 2 * sum(change.verdict in ONE_SIDED for change in self.changes) > len(self.changes)

    @property
    def baseline(self) -> str:
        """The implementation that all ratios refer to, empty if no row is of it."""
        of = (change.case.implementation for change in self.changes if change.verdict == verdicts.BASELINE)
        return self.rebased_to or ", ".join(dict.fromkeys(of))

    @property
    def mark(self) -> str:
        """What every line begins with, empty if nothing was forced."""
        return STAMP if self.unlike else ""

    @property
    def stamp(self) -> str:
        """The stamp with its reasons, empty if nothing was forced."""
        return f"{STAMP}: {'; '.join(self.unlike)}" if self.unlike else ""

    def named(self, change: Change) -> str:
        """Return the implementation and the point of a change."""
        return f"{change.case.implementation} {self.label(change)}".rstrip()


def columns(report: Report) -> list[Column]:
    """Return the columns of the rows; a narrow terminal drops the raw times."""
    return [
        VERDICT,
        Column("implementation", lambda of: of.case.implementation, key="implementation", is_code=True),
        Column("point", report.label, key="point"),
        Column("change", percent, lambda of: of.numbers()["change"], key="change"),
        Column("base", lambda of: time(of.base), lambda of: of.base.get("latency_s"), rank=2, key="base"),
        Column("new", lambda of: time(of.new), lambda of: of.new.get("latency_s"), rank=2, key="new"),
    ]


def blocks(report: Report) -> list[Block]:
    """Return the whole comparison.

    With `shows_all` all rows are in the open, worst first, but not those of one run alone if they are most.
    """
    rows = [row for row in report.rows if not (report.few_shared and row.verdict in ONE_SIDED)]
    if not report.shows_all:
        rows = [row for row in rows if row.verdict in EVENTS]
    listed, of = rows[:MOST_ROWS], columns(report)
    shown = {id(row) for row in listed}
    rest = [row for row in report.rows if id(row) not in shown]
    title = f"the other {len(rest)} rows: {counts(rest)}" if rest else "legend"
    notes = Lines(explanations(report), is_list=True)
    return [
        *head(report),
        Table(SUMMARY, implementations(report)),
        *([GAP] if listed else []),
        Table(of, listed, gap=" "),
        failures(report, listed),
        Folded(title, Table(of, rest), notes, _not_listed(report, len(rows), listed)),
        *_commands(report, listed),
        Lines(report.notes, is_list=True),
        Lines([counts(report.rows)]),
    ]


def head(report: Report) -> list[Block]:
    """Return under which conditions the runs were measured if they differ, the headline, and what all points share."""
    over = [f"by speed-ups over {report.baseline}"] if report.baseline else []
    return [
        Lines([f"measured under different conditions: {'; '.join(report.unlike)}"] * bool(report.unlike), BAD,
            is_foreign=True),
        Lines(headline(report), HEAD),
        GAP,
        Lines([" · ".join([report.shared, *over])]),
    ]  # fmt: skip


def failures(report: Report, rows: Sequence[Change]) -> Lines:
    """Return why those of the rows fail that failed in NEW alone."""
    lines = [
        f"newly failing: {report.named(row)}: {row.new['status']}: {reason(row.new) or 'no detail'}"
        for row in rows
        if row.verdict == verdicts.NEWLY_FAILING
    ]
    return Lines(lines, is_list=True, is_foreign=True)


def _commands(report: Report, rows: Sequence[Change]) -> list[Block]:
    """Return the commands that measure those of the rows again that changed; none if none did.

    A forced comparison has none: its stamp would stand in them.
    """
    changed = [row for row in rows if row.verdict in EVENTS and not report.mark]
    worst = changed[:MOST_COMMANDS]
    which = "each changed row" if worst == changed else f"the worst {len(worst)} of {len(changed)} changed rows"
    commands = [report.again.command(row.case) for row in worst]
    return [Folded(f"measure {which} again", Code(commands, "sh"))] if commands else []


def _not_listed(report: Report, rows: int, listed: Sequence[Change]) -> str:
    """Return how many rows a terminal does not list; `rows` is the number that it might."""
    left = len(report.rows) - len(listed)
    how = "" if report.shows_all or len(listed) < rows else "--all lists them, "
    return f"not listed: {left:,} rows; {how}--format csv has them" if left else ""


def as_csv(report: Report) -> str:
    """Return one line per row; `stamp` says why the row is not comparable, `baseline` what its ratios refer to.

    A number that doesn't apply is empty.
    """
    return pd.DataFrame(_data(report), dtype=object).to_csv(index=False, lineterminator="\n")


def as_json(report: Report) -> str:
    """Return one object on one line: limits, summary, counts and notes, and `rows`, each with stamp and baseline.

    A number that doesn't apply is null.
    """
    about = {
        "stamp": report.stamp or None,
        "baseline": report.baseline or None,
        "rebased": bool(report.rebased_to),
        "margin": report.limits.margin,
        "equivalence": report.limits.bound,
        "level": report.limits.level,
        "summary": headline(report),
        "counts": Counter(row.verdict for row in report.rows),
        "notes": list(report.notes),
    }
    return json.dumps({**about, "rows": _data(report)}, ensure_ascii=False, allow_nan=False) + "\n"


def _data(report: Report) -> list[dict[str, Any]]:
    """Return the columns of each row behind those with which a row can be quoted alone."""
    same = {"stamp": report.stamp or None, "baseline": report.baseline or None}
    return [{name: _plain(value) for name, value in {**same, **row.columns()}.items()} for row in report.rows]


def _plain(value: Any) -> Any:
    """Return a value that fits on one line and into JSON."""
    if isinstance(value, str):
        return " ".join(value.split())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def percent(change: Change) -> str:
    """Return a change with the half-width of its interval, `-5.0% ±0.23%`, empty if there is nothing to judge."""
    if any(row.get("status") != "ok" for row in (change.base, change.new)) or change.verdict == verdicts.BASELINE:
        return ""
    if math.isnan(change.ratio.value):
        return "no ratio"
    return f"{signed_percent(change.ratio.value)} {units.half_width(change.ratio.low, change.ratio.high) or '±?'}"


def signed_percent(ratio: float) -> str:
    """Return a ratio as a change, `-5.0%`."""
    return f"{round(100 * (ratio - 1), 1) + 0:+.1f}%"  # + 0 makes -0.0 plain


def excluded(rows: Sequence[Change]) -> tuple[str, int]:
    """Return a bound that nearly all of these judged rows show no change above, in whole per cent, and their number.

    The bound is empty if it is so high that it says nothing.
    """
    ends = sorted(max(of.ratio.high, 1 / of.ratio.low if of.ratio.low else math.inf) - 1 for of in rows)
    bound = ends[math.ceil(NEARLY_ALL * len(ends)) - 1]
    if bound >= MOST_CHANGE:
        return "", 0
    bound = math.ceil(100 * bound) / 100
    return f"{bound:.0%}", sum(end <= bound for end in ends)


def implementations(report: Report) -> list[tuple[str, ...]]:
    """Return each implementation with its judged rows, middle change, what nearly all exclude, and verdicts."""
    lines: list[tuple[str, ...]] = []
    for name in dict.fromkeys(change.case.implementation for change in report.changes):
        if rows := [change for change in report.judged if change.case.implementation == name]:
            bound, number = excluded(rows)
            middle = math.exp(statistics.median(math.log(change.ratio.value) for change in rows))
            few = "" if number in (0, len(rows)) else f" in {number}"
            lines.append((name, str(len(rows)), signed_percent(middle), f"{bound}{few}", counts(rows)))
    return lines


def explanations(report: Report) -> list[str]:
    """Return what the columns and verdicts of a report mean, line by line."""
    limits, rows = report.limits, report.rows
    margin, bound, level = (units.percent(share, trim=True) for share in (limits.margin, limits.bound, limits.level))
    lines = [
        _reference(rows, report.baseline),
        f"slower, faster: by more than {margin}, wrong about any of the rows with a chance of {level}; "
        f"equivalent: within {bound}",
        "base, new: raw times, shown and never judged",
    ]
    if any(change.verdict == OPEN for change in rows):
        lines.append("open: neither a change nor its absence is shown; no change above: what 95 % intervals exclude")
    return lines


def _reference(rows: Sequence[Change], baseline: str) -> str:
    """Return what a change is relative to."""
    to = f"to {baseline}" if baseline else "to the baseline"
    by_level = sum(change.by_level for change in rows)
    others = sum(change.ratio.is_known for change in rows) - by_level
    beside = f", or in {counted(others, 'row')} {to}" if others else ""
    of, warning = to, ""
    if by_level:
        of = f"to the other rows of its point{beside}"
        warning = ". If all rows of a point became slower alike, the change is 0, and only raw times show it"
    return f"change: how much faster a row became from BASE to NEW, relative {of}; minus is slower{warning}"


def headline(report: Report) -> list[str]:
    """Return the first lines of a comparison: in which runs identical code differs, how they differ, what changed."""
    rows, lines = report.rows, [*report.doubts]
    if report.few_shared:
        base, new = (sum(change.verdict == verdict for change in rows) for verdict in ONE_SIDED)
        lines.append(
            f"BASE and NEW are different runs: they share {len(rows) - base - new} of {len(rows)} cases; "
            f"{base} are in BASE alone and {new} in NEW alone"
        )
    return [*lines, *report.unlike_runs, "; ".join(_findings(report))]


def _findings(report: Report) -> Iterator[str]:
    """Yield what changed in what to use and in rows, and the largest change that the others exclude."""
    changed, same = _use(report)
    yield from [changed] * bool(changed)
    for verdict in (verdicts.SLOWER, verdicts.NEWLY_FAILING, verdicts.FASTER):
        if affected := [change for change in report.rows if change.verdict == verdict]:
            yield _named(affected, f"{'is' if len(affected) == 1 else 'are'} {verdict}", report)
    yield from [same] * bool(same)
    judged = report.judged
    if not judged:
        yield _nothing_judged(report)
        return
    left = [change for change in judged if change.verdict not in CHANGED]
    if any(change.verdict == OPEN for change in left):
        yield from _excluded(left, "other " if len(left) < len(judged) else "")
    elif left:
        others = "every other judged row" if len(left) < len(judged) else "every judged row"
        yield f"{others} is equivalent, within {units.percent(report.limits.bound, trim=True)}"


def _excluded(left: Sequence[Change], other: str) -> Iterator[str]:
    """Yield which changes the rows exclude that both runs measured well, and how many others there are."""
    told = [change for change in left if change.is_well_measured] or left
    vague = len(left) - len(told)
    measured = f" that both runs measured in {WELL} processes or more" if vague else ""
    rows = f"{counted(len(told), f'{other}row')}{measured}"
    bound, number = excluded(told)
    yield f"no change above {bound} in {number} of {rows}" if bound else f"{rows}: the scatter excludes no change"
    if vague:
        yield f"{vague} other {'row was' if vague == 1 else 'rows were'} measured in fewer"


def _use(report: Report) -> tuple[str, str]:
    """Return at which points BASE's choice is no longer one in NEW.

    If there are none: empty, and at which NEW names another one, with the most that BASE's choice costs in NEW.
    """
    named = {of.point: of.case.implementation for of in report.rows if of.new.get("standing") in (FASTEST, NAMED)}
    chosen = [of for of in report.rows if of.base.get("standing") in (FASTEST, NAMED) and of.point in named]
    lost = [of for of in chosen if of.new.get("status") != "ok" or (of.new["slowdown_low"] or 1.0) > GOOD]
    others = [of for of in chosen if of.case.implementation != named[of.point]]
    moved = [f"{report.label(of)} {of.case.implementation} → {named[of.point]}".strip() for of in lost or others]
    points = counted(len(chosen), "point")
    if lost:
        return f"what to use changed at {len(lost)} of {points}: {first(moved, MOST_NAMED)}", ""
    most = max((of.new["slowdown_high"] or math.inf for of in chosen), default=math.inf)
    cost = f"costs at most {more(most)}" if most < MOST else "has no bound of its cost"
    cost = f"BASE's choice {'is still the fastest' if most == 1 else cost} in NEW"
    if moved:
        return "", f"NEW names another one at {len(others)} of {points}: {first(moved, MOST_NAMED)}; {cost}"
    return "", f"what to use is the same: at {points} {cost}" if math.isfinite(most) else ""


def _nothing_judged(report: Report) -> str:
    """Return why no row was judged."""
    sides = [row.get("processes") for change in report.rows for row in (change.base, change.new)]
    if any(not math.isnan(change.ratio.value) for change in report.rows) and 1 in sides:
        return f"1 process on a side shows no change: measure both runs with --processes {CLAIM}"
    return "no row was judged"


def _named(affected: Sequence[Change], what: str, report: Report) -> str:
    """Return the number of affected rows, and the worst by name."""
    worst = sorted(
        affected, key=lambda of: 0.0 if math.isnan(of.ratio.value) else -abs(round(math.log(of.ratio.value), 3))
    )
    names = [
        f"{report.named(of)}{f' {signed_percent(of.ratio.value)}' if of.verdict in CHANGED else ''}" for of in worst
    ]
    return f"{counted(len(affected), 'row')} {what}: {first(names, MOST_NAMED)}"
