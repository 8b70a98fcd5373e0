"""A comparison of two runs: the headline, the rows that changed, and all rows as data."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from bench.analyse.change import Change
from bench.analyse.standing import FASTEST, NAMED
from bench.plan import verdicts
from bench.plan.verdicts import CHANGED
from bench.show.blocks import BAD, HEAD, QUIET, Block, Column, Lines, Table
from bench.show.comparison.changes import VERDICT, Comparison, counts, time
from bench.show.rows import reason
from bench.show.text import counted, first, more
from bench.stats.best import GOOD
from bench.stats.limits import Limits
from bench.store import units

EVENTS = (*CHANGED, verdicts.NEWLY_FAILING, verdicts.FIXED)
"""Verdicts of rows that a person should see."""

NEARLY_ALL, MOST_CHANGE = 0.9, 100.0
"""The share of rows for which a bound of changes is said, because a few are noisy everywhere; what is no bound."""

MOST_NAMED, MOST_ROWS = 3, 1_000
"""The most changed rows that are named, and that are listed, the worst first."""


@dataclass(frozen=True)
class Report(Comparison):
    """A comparison of two runs with the notes about it.

    `unlike` holds the conditions that differ if the comparison was forced. With `shows_all` every row is listed.
    """

    limits: Limits = field(default_factory=Limits)
    unlike: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    shows_all: bool = False

    @cached_property
    def rows(self) -> list[Change]:
        """The changes by verdict, worst first, and within a verdict by their ratio, slowest first."""
        rank = list(verdicts.VERDICTS).index
        return sorted(self.changes, key=lambda of: (rank(of.verdict), round(of.numbers()["change"] or 1, 3)))

    def named(self, change: Change) -> str:
        """Return the implementation and the point of a change."""
        return f"{change.case.implementation} {self.label(change)}".rstrip()


def columns(report: Report) -> list[Column]:
    """Return the columns of the rows; a narrow terminal drops the raw times."""
    return [
        VERDICT,
        Column("implementation", lambda of: of.case.implementation, is_code=True),
        Column("point", report.label),
        Column("change", percent, lambda of: of.numbers()["change"]),
        Column("base", lambda of: time(of.base), lambda of: of.base.get("latency_s"), rank=2),
        Column("new", lambda of: time(of.new), lambda of: of.new.get("latency_s"), rank=2),
    ]


def blocks(report: Report) -> list[Block]:
    """Return the headline, the rows that changed or all of them, why some fail, notes, and the counts."""
    rows = report.rows if report.shows_all else [row for row in report.rows if row.verdict in EVENTS]
    listed = rows[:MOST_ROWS]
    left = len(report.rows) - len(listed)
    failing = [row for row in listed if row.verdict == verdicts.NEWLY_FAILING]
    return [
        Lines([f"NOT COMPARABLE: {'; '.join(report.unlike)}"] if report.unlike else [], BAD, is_foreign=True),
        Lines([headline(report)], HEAD),
        Lines([report.shared]),
        Table(columns(report), listed),
        Lines([f"{report.named(row)}: {row.new['status']}: {reason(row.new) or 'no detail'}" for row in failing],
            is_list=True, is_foreign=True),
        Lines([f"not listed: {left:,} rows; --all lists them, --format csv has them"] if left else []),
        Lines([*_legend(report), *report.notes], QUIET, is_list=True),
        Lines([counts(report.rows)]),
    ]  # fmt: skip


def as_csv(report: Report) -> str:
    """Return one line per row; a number that doesn't apply is empty."""
    return _frame(report).to_csv(index=False, lineterminator="\n")


def as_json(report: Report) -> str:
    """Return one object: conditions, headline, counts, notes and `rows`; a number that doesn't apply is null."""
    about = {
        "unlike": report.unlike,
        "margin": report.limits.margin,
        "summary": headline(report),
        "counts": Counter(row.verdict for row in report.rows),
        "notes": report.notes,
        "rows": json.loads(_frame(report).to_json(orient="records", double_precision=15)),
    }
    return json.dumps(about, ensure_ascii=False) + "\n"


def _frame(report: Report) -> pd.DataFrame:
    return pd.DataFrame([row.columns() for row in report.rows], dtype=object).replace([math.inf, -math.inf], None)


def percent(change: Change) -> str:
    """Return a change with the half-width of its interval, `-5.0% ±0.23%`, empty if there is nothing to judge."""
    if any(row.get("status") != "ok" for row in (change.base, change.new)) or change.verdict == verdicts.BASELINE:
        return ""
    if math.isnan(change.ratio.value):
        return "no ratio"
    return f"{_signed(change.ratio.value)} {units.half_width(change.ratio.low, change.ratio.high) or '±?'}"


def _signed(ratio: float) -> str:
    return f"{round(100 * (ratio - 1), 1) + 0:+.1f}%"  # + 0 makes -0.0 plain


def headline(report: Report) -> str:
    """Return what changed in what to use and in rows, and which change the others exclude."""
    return "; ".join(_findings(report))


def _findings(report: Report) -> Iterator[str]:
    lost, kept = _use(report)
    yield from lost
    for verdict in (verdicts.SLOWER, verdicts.NEWLY_FAILING, verdicts.FASTER):
        if rows := [report.named(change) for change in report.rows if change.verdict == verdict]:
            verb = "is" if len(rows) == 1 else "are"
            yield f"{counted(len(rows), 'row')} {verb} {verdict}: {first(rows, MOST_NAMED)}"
    yield from kept
    left = [change for change in report.rows if change.is_judged and change.verdict not in CHANGED]
    if left:
        bound, number = excluded(left)
        others = f"{number} of {counted(len(left), 'other row')}"
        yield f"no change above {bound} in {others}" if bound else "the scatter excludes no change"
    elif not any(change.is_judged for change in report.rows):
        yield "no row was judged: one process on a side has no interval"


def excluded(rows: Sequence[Change]) -> tuple[str, int]:
    """Return a bound that nearly all of these judged rows show no change above, in whole per cent, and their number."""
    ends = sorted(max(of.ratio.high, 1 / of.ratio.low if of.ratio.low else math.inf) - 1 for of in rows)
    bound = ends[math.ceil(NEARLY_ALL * len(ends)) - 1]
    if bound >= MOST_CHANGE:
        return "", 0
    bound = math.ceil(100 * bound) / 100
    return f"{bound:.0%}", sum(end <= bound for end in ends)


def _use(report: Report) -> tuple[list[str], list[str]]:
    """Return at which points BASE's choice is shown to be slower in NEW, or else the most that it costs there."""
    chosen = [of for of in report.rows if of.base.get("standing") in (FASTEST, NAMED) and of.new]
    lost = [report.named(of) for of in chosen if of.new.get("status") != "ok" or (of.new["slowdown_low"] or 1.0) > GOOD]
    most = max((of.new.get("slowdown_high") or math.inf for of in chosen), default=math.inf)
    if lost:
        return [f"what to use changed at {len(lost)} of {counted(len(chosen), 'point')}: {first(lost, MOST_NAMED)}"], []
    cost = "is still the fastest" if most == 1 else f"costs at most {more(most)}"
    return [], [f"BASE's choice {cost} in NEW"] if math.isfinite(most) else []


def _legend(report: Report) -> Iterator[str]:
    margin, level = (units.percent(share, trim=True) for share in (report.limits.margin, report.limits.level))
    yield (
        "change: how much faster a row became relative to the others of its own run; minus is slower. slower, faster: "
        f"by more than {margin}, wrong about any row with a chance of {level}; base, new: raw times, never judged"
    )
