"""A comparison as data for other programs: CSV and JSON, worst first, numbers in full."""

import json
import math
from typing import Any

import pandas as pd

from bench.plan.case import CASE_COLUMNS
from bench.show.comparison.headline import headline
from bench.show.comparison.report import Report
from bench.show.rows import Row

FIRST = ("stamp", "baseline", "verdict")
"""Columns before those of the case; with them a row can be quoted alone."""


def as_csv(report: Report) -> str:
    """Return one line per row; `stamp` says why the row is not comparable, `baseline` what its ratios refer to.

    A number that doesn't apply is empty.
    """
    rows = [_row(row, report) for row in report.rows]
    return pd.DataFrame(rows, columns=_columns(report), dtype=object).to_csv(index=False, lineterminator="\n")


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
        "summary": headline(report),
        "counts": {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
        "notes": list(report.notes),
    }
    rows = [_row(row, report) for row in report.rows]
    return json.dumps({**about, "rows": rows}, ensure_ascii=False, allow_nan=False) + "\n"


def _columns(report: Report) -> list[str]:
    others = [str(name) for name in report.comparison.columns if name not in (*CASE_COLUMNS, *FIRST)]
    order = sorted(others, key=lambda name: name.startswith(("base_", "new_")))
    return [*FIRST, *CASE_COLUMNS, *order]


def _row(row: Row, report: Report) -> dict[str, Any]:
    values = {**row, "stamp": report.stamp or None, "baseline": report.baseline or None}
    return {name: _plain(values[name]) for name in _columns(report)}


def _plain(value: Any) -> Any:
    """Return a value that fits on one line and into JSON."""
    if isinstance(value, str):
        return " ".join(value.split())
    return None if isinstance(value, float) and not math.isfinite(value) else value
