"""A comparison of two runs: a headline, the changed rows, notes on differences, and all rows as data."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.change import Change
from bench.analyse.comparable import is_steady, raw_change
from bench.analyse.comparison import excluded, frame, no_longer_to_use
from bench.plan import verdicts
from bench.plan.verdicts import EVENTS, FASTER, NEWLY_FAILING, SLOWER
from bench.show.blocks import BAD, HEAD, QUIET, Block, Column, Lines, Table
from bench.show.comparison.changes import VERDICT, labels
from bench.show.rows import reason, time
from bench.show.text import capital, counted, first, shared
from bench.store import units

MOST_NAMED, MOST_ROWS = 3, 1_000
"""The most changed rows that are named, and the most that are listed, the worst first."""

LEGEND = "change: of the speed-up over the baseline; minus is slower (99% confidence for all rows together)"


def headline(changes: Sequence[Change]) -> str:
    """Return the changes of recommendations and of rows, and the bound on the other rows' changes."""
    return capital("; ".join(_findings(changes)))


def _findings(changes: Sequence[Change]) -> Iterator[str]:
    lost, number = no_longer_to_use(changes)
    if lost:
        yield f"what to use changed at {len(lost)} of {counted(number, 'point')}: {_named(lost, changes)}"
    for verdict in (SLOWER, NEWLY_FAILING, FASTER):
        if rows := [change for change in changes if change.verdict == verdict]:
            verb = "is" if len(rows) == 1 else "are"
            yield f"{counted(len(rows), 'row')} {verb} {verdict}: {_named(rows, changes)}"
    judged = [change for change in changes if change.is_judged]
    others = [change for change in judged if change.verdict not in (SLOWER, FASTER)]
    if others:
        bound, number = excluded(others)
        among = counted(len(others), "row" if len(others) == len(judged) else "other row")
        is_bound = math.isfinite(bound)
        yield f"no change above {bound:.0%} in {number} of {among}" if is_bound else "the intervals exclude no change"
    elif not judged:
        is_disturbed = any(change.is_disturbed for change in changes)
        why = "other processes disturbed them" if is_disturbed else "one process gives no interval"
        yield f"no row was judged, because {why}"


def _named(some: Iterable[Change], among: Sequence[Change]) -> str:
    label = labels(among)
    return first([f"{change.case.implementation} {label(change)}".rstrip() for change in some], MOST_NAMED)


def notes(base: AnalysedRun, new: AnalysedRun, changes: Sequence[Change]) -> Iterator[str]:
    """Yield the differences between two runs besides their rows, and why rows are open."""
    if number := sum(change.is_disturbed for change in changes):
        yield f"{counted(number, 'row')} left open, because other processes disturbed most samples"
    efforts = [run.effort for run in (base, new)]
    if None not in efforts and efforts[0] != efforts[1]:
        old, young = (vars(effort) for effort in efforts)
        asked = [f"{name} {old[name]} against {young[name]}" for name in old if old[name] != young[name]]
        yield f"BASE and NEW have different settings: {'; '.join(asked)}"
    yield f"BASE is {_origin(base.table)}; NEW is {_origin(new.table)}"
    if factor := raw_change(changes):
        moved = "" if is_steady(factor) else "; the machine ran at another speed, so measure both sides in a duel"
        yield f"the median row takes {factor:.2f} times as long in NEW{moved}"


def _origin(table: pd.DataFrame) -> str:
    """Return the measured commits and the number of processes."""
    commits = ", ".join(table["commit"].dropna().unique()) or "unknown"
    processes = counted(table.loc[table["status"] == "ok", "processes"].dropna().tolist(), "process", "processes")
    return f"commit {commits}" + (f" in {processes}" if processes else "")


def blocks(
    changes: Sequence[Change], unlike: Sequence[str], remarks: Sequence[str], *, shows_all: bool = False
) -> list[Block]:
    """Return the headline, the changed rows or all of them, why some fail, remarks, and the counts.

    `unlike` has the conditions that differ in a forced comparison.
    """
    label = labels(changes)
    rows = [change for change in changes if shows_all or change.verdict in EVENTS][:MOST_ROWS]
    left = len(changes) - len(rows)
    failing = [
        f"{_named([row], changes)}: {row.new['status']}: {reason(row.new) or 'no detail'}"
        for row in rows
        if row.verdict == NEWLY_FAILING
    ]
    columns = [
        VERDICT,
        Column("implementation", lambda of: of.case.implementation, is_code=True),
        Column("point", label),
        Column("change", percent, lambda of: of.ratio.value),
        Column("base", lambda of: time(of.base), lambda of: of.base.get("latency_s"), rank=2),
        Column("new", lambda of: time(of.new), lambda of: of.new.get("latency_s"), rank=2),
    ]
    return [
        Lines([f"NOT COMPARABLE: {'; '.join(unlike)}"] if unlike else [], BAD, is_foreign=True),
        Lines([headline(changes)], HEAD),
        Lines([shared({change.point for change in changes})]),
        Table(columns, rows),
        Lines(failing, is_list=True, is_foreign=True),
        Lines([LEGEND] if rows else [], QUIET),
        Lines(remarks, QUIET, is_list=True),
        Lines([counts(changes) + (f"; --all lists {left:,} more rows" if left else "")]),
    ]


def counts(changes: Iterable[Change]) -> str:
    """Return the number of changes with each verdict, worst first: `2 slower, 1 missing, 40 equivalent`."""
    number = Counter(change.verdict for change in changes)
    return ", ".join(f"{number[verdict]} {verdict}" for verdict in verdicts.VERDICTS if number[verdict])


def percent(change: Change) -> str:
    """Return a change with its interval's half-width, `-5.0% ±0.23%`; empty without a judgement."""
    if change.verdict not in verdicts.JUDGED:
        return ""
    ratio = change.ratio
    if math.isnan(ratio.value):
        return "no ratio"
    share = round(100 * (ratio.value - 1), 1) + 0  # + 0 makes -0.0 plain
    return f"{share:+.1f}% {units.half_width(ratio.low, ratio.high) or '±?'}"


def as_csv(changes: Sequence[Change]) -> str:
    """Return CSV with one line per row; numbers that don't apply are empty."""
    return frame(changes).to_csv(index=False, lineterminator="\n")


def as_json(changes: Sequence[Change], unlike: Sequence[str], remarks: Sequence[str], margin: float) -> str:
    """Return a JSON object: conditions, headline, counts, notes and `rows`; numbers that don't apply are null."""
    about = {
        "headline": headline(changes),
        "unlike": [*unlike],
        "margin": margin,
        "counts": Counter(change.verdict for change in changes),
        "notes": [*remarks],
        "rows": json.loads(frame(changes).to_json(orient="records", double_precision=15)),
    }
    return json.dumps(about, ensure_ascii=False) + "\n"
