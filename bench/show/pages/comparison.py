"""Pages of several runs: a comparison with both runs' samples of each row, and a history with its steps marked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.analyse.history import Entry, History
from bench.plan.case import Case
from bench.show import history, intervals
from bench.show.blocks import Column, Lines, Table
from bench.show.charts import base as base_of_charts
from bench.show.charts import interactive
from bench.show.charts.changes import changes, drawn_row, is_drawn
from bench.show.columns import latency_text
from bench.show.comparison import blocks
from bench.show.comparison.report import Report, counts, explanations, implementations
from bench.show.pages import shell
from bench.show.pages.shell import STEPS, by_case, samples
from bench.show.point_text import names as labels_of
from bench.show.rows import Row, is_measured, plain
from bench.store.saved_run import SavedRun

MOST_ROWS = 1_500
"""The most rows in a page, the worst first."""


def write(path: Path, report: Report, base: SavedRun, new: SavedRun) -> Path:
    """Write the page of a comparison, and return its file; raises WrongRequest if it can't be written."""
    return shell.write(path, page(report, base, new))


def page(report: Report, base: SavedRun, new: SavedRun) -> str:
    """Return the page of a comparison of two runs."""
    rows = report.rows[:MOST_ROWS]
    names = list(dict.fromkeys(str(row["implementation"]) for row in rows))
    left = len(report.rows) - len(rows)
    return shell.render(
        "comparison.html",
        " and ".join(_names(base, new)),
        names,
        _data(report, rows, base, new),
        stamp=report.mark,
        head=blocks.head(report),
        left_out=f"This page has the first {len(rows)} rows; --format csv has the other {left} too." if left else "",
        summary=Table(blocks.SUMMARY, implementations(report)),
        table=Table(blocks.columns(report), rows),
        notes=[
            Lines([counts(report.rows)]),
            blocks.failures(report, rows),
            Lines([*explanations(report), *report.notes], is_list=True),
        ],
    )


def _names(base: SavedRun, new: SavedRun) -> tuple[str, str]:
    """Return the names of two runs, with as many of their folders as tell them apart."""
    first, second = (saved.path.resolve().parts for saved in (base, new))
    longest = max(len(first), len(second))
    count = next((count for count in range(1, longest + 1) if first[-count:] != second[-count:]), 1)
    return "/".join(first[-count:]), "/".join(second[-count:])


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def _data(report: Report, rows: Sequence[Row], base: SavedRun, new: SavedRun) -> dict[str, Any]:
    """Return what the page's script reads; rows of the table are in the same order as here."""
    labels = [report.point(row) or "the only point" for row in rows]
    points = list(dict.fromkeys(labels))
    cases = [Case.from_columns(row) for row in rows]
    sides = [_rows_by_case(saved) for saved in (base, new)]
    drawn_rows = [
        {
            **drawn_row(report, row),
            "point": points.index(label),
            "sides": [_side(rows_of_side.get(case)) for rows_of_side in sides],
        }
        for row, label, case in zip(rows, labels, cases, strict=True)
    ]
    packs = [_samples(saved, cases, own) for saved, own in zip((base, new), sides, strict=True)]
    judged = [row for row in rows if is_drawn(row)]
    with base_of_charts.unchecked():
        drawn = {"samples": {"any": interactive.samples()}}
        if judged:
            drawn["changes"] = {"any": changes(judged, report.limits)}
    return {
        "kind": "comparison",
        "points": points,
        "rows": shell.columns(drawn_rows),
        "charts": drawn,
        "samples": shell.packed(shell.as_data([pack for pack, _ in packs])),
        "every": max(every for _, every in packs),
        "steps": STEPS,
        "sides": ["BASE", "NEW"],
    }


def _rows_by_case(saved: SavedRun) -> dict[Case, Row]:
    return {Case.from_columns(row): row for row in plain(saved.table) if is_measured(row)}


def _side(row: Row | None) -> dict[str, Any]:
    if row is None:
        return {"latency_s": None}
    numbers = {name: _number(row[name]) for name in ("latency_s", "latency_low_s", "latency_high_s")}
    return {**numbers, "latency_text": latency_text(row)}


def _samples(saved: SavedRun, cases: Sequence[Case], rows: Mapping[Case, Row]) -> tuple[dict[int, Any], int]:
    records = by_case(saved.records)
    return samples({
        number: (float(rows[case]["latency_s"]), records.get(case, []))
        for number, case in enumerate(cases)
        if case in rows
    })  # fmt: skip


@dataclass(frozen=True)
class HistoryRow:
    """A case in a run, with the names of both."""

    case: Case
    point: str
    number: int
    run: str
    version: str
    entry: Entry


HISTORY_COLUMNS = (
    Column("point", lambda row: row.point, key="point"),
    Column("implementation", lambda row: row.case.implementation, key="implementation"),
    Column("run", lambda row: row.run, key="run"),
    Column("versions", lambda row: row.version, key="version"),
    Column("speed-up", lambda row: intervals.ratio(row.entry.speedup), lambda row: row.entry.speedup.value,
        key="speedup"),
    Column("step", lambda row: f"{history.ARROWS[row.entry.step]} {row.entry.step}" if row.entry.step else "",
        key="step"),
)  # fmt: skip
"""The columns of the table from left to right."""


def write_history(path: Path, of: History) -> Path:
    """Write the page of a history, and return its file; raises WrongRequest if it can't be written."""
    return shell.write(path, history_page(of))


def history_page(of: History) -> str:
    """Return the page of a history."""
    names = list(dict.fromkeys(case.implementation for case in of.entries))
    labels = labels_of(history.points_of(of))
    rows = [
        HistoryRow(case, labels[case.point], number, history.label(of, number), of.runs[number].version, entry)
        for case, entries in of.entries.items()
        for number, entry in entries.items()
    ]
    return shell.render(
        "history.html",
        f"{len(of.runs)} runs",
        names,
        _history_data(rows, names, [*labels.values()]),
        head=history.head(of),
        baseline=of.baseline,
        table=Table(HISTORY_COLUMNS, rows),
    )


def _history_data(rows: Sequence[HistoryRow], names: list[str], points: list[str]) -> dict[str, Any]:
    """Return what the page's script reads; rows of the table are in the same order as here."""
    columns = {
        "point": [points.index(row.point) for row in rows],
        "label": [f"{row.number:04d}|{row.run}, {row.version}" for row in rows],
        "run": [row.number for row in rows],
        "implementation": [row.case.implementation for row in rows],
        "status": ["ok"] * len(rows),
        "speedup": [row.entry.speedup.value for row in rows],
        "speedup_low": [_finite(row.entry.speedup.low) for row in rows],
        "speedup_high": [_finite(row.entry.speedup.high) for row in rows],
        "speedup_text": [intervals.ratio(row.entry.speedup) for row in rows],
        "version": [row.version for row in rows],
        "run_label": [row.run for row in rows],
        "step": [row.entry.step for row in rows],
        "arrow": [history.ARROWS.get(row.entry.step, "") for row in rows],
    }
    with base_of_charts.unchecked():
        drawn = {"history": {"any": interactive.history(names)}}
    return {
        "kind": "history",
        "points": points,
        "rows": columns,
        "charts": drawn,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
