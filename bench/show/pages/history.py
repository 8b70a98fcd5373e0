"""The page of a history: the speed-ups of each case from run to run, with steps marked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.analyse.comparison import Entry, History
from bench.plan.case import Case
from bench.show import history, intervals
from bench.show.blocks import Column, Table
from bench.show.charts import base, over_time
from bench.show.pages import shell
from bench.show.text import names as labels_of


@dataclass(frozen=True)
class Row:
    """A case in a run, with the names of both."""

    case: Case
    point: str
    number: int
    run: str
    version: str
    entry: Entry


COLUMNS = (
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


def write(path: Path, of: History) -> Path:
    """Write the page of a history, and return its file; raises WrongRequest if it can't be written."""
    return shell.write(path, page(of))


def page(of: History) -> str:
    """Return the page of a history."""
    names = list(dict.fromkeys(case.implementation for case in of.entries))
    labels = labels_of(history.points_of(of))
    rows = [
        Row(case, labels[case.point], number, history.label(of, number), of.runs[number].version, entry)
        for case, entries in of.entries.items()
        for number, entry in entries.items()
    ]
    return shell.render(
        "history.html",
        f"{len(of.runs)} runs",
        names,
        _data(rows, names, [*labels.values()]),
        head=history.head(of),
        baseline=of.baseline,
        table=Table(COLUMNS, rows),
    )


def _data(rows: Sequence[Row], names: list[str], points: list[str]) -> dict[str, Any]:
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
    with base.unchecked():
        drawn = {"history": {"any": over_time.history(names)}}
    return {
        "kind": "history",
        "points": points,
        "rows": columns,
        "charts": drawn,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
