"""A comparison as blocks, and as CSV and JSON for other programs: every row, worst first, numbers in full."""

import json
import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from bench.plan.again import MOST_COMMANDS
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.verdicts import NEWLY_FAILING
from bench.show.blocks import BAD, GAP, HEAD, PLAIN, Block, Code, Column, Folded, Lines, Table, right
from bench.show.comparison import report as texts
from bench.show.comparison.report import EVENTS, ONE_SIDED, TONES, Report
from bench.show.rows import Row

MOST_ROWS = 1_000
"""The most rows that are listed, the worst."""

SUMMARY = (
    Column("implementation", lambda each: each.name, is_code=True),
    Column("rows", lambda each: str(each.rows), lambda each: each.rows),
    Column("middle change", lambda each: each.median, right),
    Column("no change above", lambda each: each.excluded, right),
    Column("verdicts", lambda each: each.verdicts, rank=1),
)
"""The columns of the table with a line for each implementation."""

QUOTED_FIRST = ("stamp", "baseline", "verdict")
"""Columns before those of the case; with them a row can be quoted alone."""


def columns(report: Report) -> list[Column]:
    """Return the columns of the rows; a narrow terminal drops the raw times."""
    return [
        Column("verdict", itemgetter("verdict"), key="verdict", tone=lambda row: TONES.get(row["verdict"], PLAIN)),
        Column("implementation", itemgetter("implementation"), key="implementation", is_code=True),
        Column("point", report.point, key="point"),
        Column("change", texts.change, lambda row: row["change"], key="change"),
        _time("base"),
        _time("new"),
    ]


def blocks(report: Report) -> list[Block]:
    """Return the whole comparison.

    With `shows_all` all rows are in the open, worst first, but not those of one run alone if they are most.
    """
    rows = [row for row in report.rows if not (report.few_shared and row["verdict"] in ONE_SIDED)]
    if not report.shows_all:
        rows = [row for row in rows if row["verdict"] in EVENTS]
    listed, of = rows[:MOST_ROWS], columns(report)
    shown = {id(row) for row in listed}
    rest = [row for row in report.rows if id(row) not in shown]
    title = f"the other {len(rest)} rows: {texts.counts(rest)}" if rest else "legend"
    notes = Lines(texts.explanations(report), is_list=True)
    return [
        *head(report),
        Table(SUMMARY, texts.implementations(report)),
        *([GAP] if listed else []),
        Table(of, listed, gap=" "),
        failures(report, listed),
        Folded(title, Table(of, rest), notes, _not_listed(report, len(rows), listed)),
        *_commands(report, listed),
        Lines(report.notes, is_list=True),
        Lines([texts.counts(report.rows)]),
    ]


def head(report: Report) -> list[Block]:
    """Return under which conditions the runs were measured if they differ, the headline, and what all points share."""
    over = [f"by speed-ups over {report.baseline}"] if report.baseline else []
    return [
        Lines([f"measured under different conditions: {'; '.join(report.unlike)}"] * bool(report.unlike), BAD,
            is_foreign=True),
        Lines(texts.headline(report), HEAD),
        GAP,
        Lines([" · ".join([report.shared, *over])]),
    ]  # fmt: skip


def failures(report: Report, rows: Sequence[Row]) -> Lines:
    """Return why those of the rows fail that failed in NEW alone."""
    new = [row for row in rows if row["verdict"] == NEWLY_FAILING]
    lines = [
        f"newly failing: {row['implementation']} {report.point(row)}".rstrip() + f": {texts.failure(row)}"
        for row in new
    ]
    return Lines(lines, is_list=True, is_foreign=True)


def _commands(report: Report, rows: Sequence[Row]) -> list[Block]:
    """Return the commands that measure those of the rows again that changed; none if none did.

    A forced comparison has none: its stamp would stand in them.
    """
    changed = [row for row in rows if row["verdict"] in EVENTS and not report.mark]
    worst = changed[:MOST_COMMANDS]
    which = "each changed row" if worst == changed else f"the worst {len(worst)} of {len(changed)} changed rows"
    commands = [report.again.command(Case.from_columns(row)) for row in worst]
    return [Folded(f"measure {which} again", Code(commands, "sh"))] if commands else []


def _not_listed(report: Report, rows: int, listed: Sequence[Row]) -> str:
    """Return how many rows a terminal does not list; `rows` is the number that it might."""
    if len(listed) < rows:
        return f"not listed: {rows - len(listed):,} more rows, none worse; --format csv has them"
    if len(listed) == len(report.rows):
        return ""
    how = "" if report.shows_all else "--all lists them, "
    return f"not listed: {len(report.rows) - len(listed):,} rows; {how}--format csv has them"


def _time(name: str) -> Column:
    return Column(name, lambda row: texts.side(row, name), lambda row: row[f"{name}_latency_s"], rank=2, key=name)


def as_csv(report: Report) -> str:
    """Return one line per row; `stamp` says why the row is not comparable, `baseline` what its ratios refer to.

    A number that doesn't apply is empty.
    """
    return pd.DataFrame(_data(report), dtype=object).to_csv(index=False, lineterminator="\n")


def as_json(report: Report) -> str:
    """Return one object on one line: limits, summary, counts and notes, and `rows`, each with stamp and baseline.

    A number that doesn't apply is null.
    """
    verdicts = [row["verdict"] for row in report.rows]
    about = {
        "stamp": report.stamp or None,
        "baseline": report.baseline or None,
        "rebased": bool(report.rebased_to),
        "margin": report.limits.margin,
        "equivalence": report.limits.bound,
        "level": report.limits.level,
        "summary": texts.headline(report),
        "counts": {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
        "notes": list(report.notes),
    }
    return json.dumps({**about, "rows": _data(report)}, ensure_ascii=False, allow_nan=False) + "\n"


def _data(report: Report) -> list[dict[str, Any]]:
    others = [str(name) for name in report.comparison.columns if name not in (*CASE_COLUMNS, *QUOTED_FIRST)]
    columns = [*QUOTED_FIRST, *CASE_COLUMNS, *sorted(others, key=lambda name: name.startswith(("base_", "new_")))]
    same = {"stamp": report.stamp or None, "baseline": report.baseline or None}
    return [{name: _plain({**row, **same}[name]) for name in columns} for row in report.rows]


def _plain(value: Any) -> Any:
    """Return a value that fits on one line and into JSON."""
    if isinstance(value, str):
        return " ".join(value.split())
    return None if isinstance(value, float) and not math.isfinite(value) else value
