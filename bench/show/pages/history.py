"""The page of a history: the speed-ups of each case from run to run, with steps marked."""

import math
from pathlib import Path
from typing import Any

from bench.analyse.history import History
from bench.plan.case import Case
from bench.show import intervals
from bench.show.charts import base, over_time
from bench.show.pages import shell
from bench.show.pages.cells import Cell, Column
from bench.show.point_text import differences, shared, varying
from bench.show.terminal.history import ARROWS, label

COLUMNS = (
    Column("point", "point"),
    Column("implementation", "implementation"),
    Column("run", "run"),
    Column("version", "versions"),
    Column("speedup", "speed-up", is_number=True),
    Column("step", "step"),
)
"""The columns of the table from left to right."""


def write(path: Path, of: History) -> Path:
    """Write the page of a history, and return its file; raises WrongRequest if it can't be written."""
    return shell.write(path, page(of))


def page(of: History) -> str:
    """Return the page of a history."""
    names = list(dict.fromkeys(case.implementation for case in of.entries))
    points = list(dict.fromkeys(case.point for case in of.entries))
    different = varying(points)
    labels = [differences(point, different) or "the only point" for point in points]
    steps = [entry.step for entries in of.entries.values() for entry in entries.values() if entry.step]
    listed = [(case, number) for case, entries in of.entries.items() for number in entries]
    return shell.render(
        "history.html",
        f"{len(of.runs)} runs",
        names,
        _data(of, names, labels, [points.index(case.point) for case, _ in listed], listed),
        answer=f"From one run to the next {steps.count('faster')} speed-ups became larger and "
        f"{steps.count('slower')} smaller, each shown by more than 1 %.",
        shared=shared(points),
        baseline=of.baseline,
        columns=COLUMNS,
        table=[_cells(of, case, number, labels[points.index(case.point)]) for case, number in listed],
    )


def _cells(of: History, case: Case, number: int, point: str) -> list[Cell]:
    entry = of.entries[case][number]
    return [
        Cell(point),
        Cell(case.implementation),
        Cell(label(of, number)),
        Cell(of.runs[number].version),
        Cell(intervals.ratio(entry.speedup), entry.speedup.value),
        Cell(f"{ARROWS[entry.step]} {entry.step}" if entry.step else ""),
    ]


def _data(
    of: History, names: list[str], labels: list[str], at: list[int], listed: list[tuple[Case, int]]
) -> dict[str, Any]:
    """Return what the page's script reads; rows of the table are in the same order as here."""
    entries = [of.entries[case][number] for case, number in listed]
    columns = {
        "point": at,
        "label": [f"{number:04d}|{label(of, number)}, {of.runs[number].version}" for _, number in listed],
        "run": [number for _, number in listed],
        "implementation": [case.implementation for case, _ in listed],
        "speedup": [entry.speedup.value for entry in entries],
        "speedup_low": [_known(entry.speedup.low) for entry in entries],
        "speedup_high": [_known(entry.speedup.high) for entry in entries],
        "speedup_text": [intervals.ratio(entry.speedup) for entry in entries],
        "version": [of.runs[number].version for _, number in listed],
        "run_label": [label(of, number) for _, number in listed],
        "step": [entry.step for entry in entries],
        "arrow": [ARROWS.get(entry.step, "") for entry in entries],
    }
    with base.unchecked():
        drawn = {"history": {"any": over_time.history(names)}}
    return {
        "kind": "history",
        "names": names,
        "points": labels,
        "rows": columns,
        "charts": drawn,
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
