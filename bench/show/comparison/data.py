"""A comparison as data for other programs: CSV and JSON, worst first, numbers in full."""

import json
import math
from typing import Any

import pandas as pd

from bench.plan.case import CASE_COLUMNS
from bench.show.comparison.report import Report, headline

FIRST = ("stamp", "baseline", "verdict")
"""Columns before those of the case; with them a row can be quoted alone."""


def as_csv(report: Report) -> str:
    """Return one line per row; `stamp` says why the row is not comparable, `baseline` what its ratios refer to.

    A number that doesn't apply is empty.
    """
    return pd.DataFrame(_rows(report), dtype=object).to_csv(index=False, lineterminator="\n")


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
    return json.dumps({**about, "rows": _rows(report)}, ensure_ascii=False, allow_nan=False) + "\n"


def _rows(report: Report) -> list[dict[str, Any]]:
    others = [str(name) for name in report.comparison.columns if name not in (*CASE_COLUMNS, *FIRST)]
    columns = [*FIRST, *CASE_COLUMNS, *sorted(others, key=lambda name: name.startswith(("base_", "new_")))]
    same = {"stamp": report.stamp or None, "baseline": report.baseline or None}
    return [{name: _plain({**row, **same}[name]) for name in columns} for row in report.rows]


def _plain(value: Any) -> Any:
    """Return a value that fits on one line and into JSON."""
    if isinstance(value, str):
        return " ".join(value.split())
    return None if isinstance(value, float) and not math.isfinite(value) else value
