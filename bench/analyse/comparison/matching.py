"""The rows of two tables of results in pairs of the same case."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.plan.case import CASE_COLUMNS
from bench.plan.errors import NotComparable, WrongRequest
from bench.stats.limits import Truths
from bench.stats.replicates import Array
from bench.store.record import Record
from bench.store.table import baseline_of, cases

SIDES = ("base", "new")

SHOWN = (
    "status", "detail", "speedup", "speedup_low", "speedup_high", "log_ratio_freedom", "processes", "latency_s"
)  # fmt: skip
"""Columns of both sides that a comparison keeps."""

NAMED = 4
"""The most values of a column that an error names, so that it stays one line."""

COLUMNS = (*CASE_COLUMNS, *(f"{side}_{name}" for name in SHOWN for side in SIDES))


def common_implementations(base: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """Return the implementations that were measured in both runs, in BASE's order."""
    in_new = {record.case.implementation for record in new if record.status == "ok"}
    in_base = dict.fromkeys(record.case.implementation for record in base if record.status == "ok")
    return [name for name in in_base if name in in_new]


def match(base: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return every case of either table once, with the columns of both sides under the prefixes base_ and new_.

    Raises NotComparable if no case is shared, WrongRequest if a table holds a case twice.
    """
    keys = list(CASE_COLUMNS)
    matched = pd.concat([base[keys], new[keys]], ignore_index=True).drop_duplicates(ignore_index=True)
    for side, table in zip(SIDES, (base, new), strict=True):
        _check_unique(side, table)
        columns = {name: f"{side}_{name}" for name in SHOWN}
        values = table[[*keys, *columns]].rename(columns=columns).assign(**{f"{side}_present": True})
        matched = matched.merge(values, how="left", on=keys)
    if not (present(matched, "base") & present(matched, "new")).any():
        raise NotComparable(f"BASE and NEW share no case{_disjoint(base, new)}")
    return matched


def present(matched: pd.DataFrame, side: str) -> Truths:
    """Return which cases a side holds."""
    return matched[f"{side}_present"].notna().to_numpy(dtype=bool)


def is_ok(matched: pd.DataFrame, side: str) -> Truths:
    """Return which cases a side measured."""
    return matched[f"{side}_status"].eq("ok").fillna(False).to_numpy(dtype=bool)


def shared_baseline(base: pd.DataFrame, new: pd.DataFrame) -> str | None:
    """Return the implementation that the speed-ups of both tables refer to, None if a table doesn't say it.

    Raises NotComparable if they refer to two.
    """
    in_base, in_new = baseline_of(base), baseline_of(new)
    if in_base and in_new and in_base != in_new:
        raise NotComparable(f"speed-ups refer to {in_base} in BASE and to {in_new} in NEW; expected one baseline")
    return in_base if in_new else None


def numbers(matched: pd.DataFrame, column: str) -> Array:
    """Return a column of numbers, NaN if one is missing."""
    return matched[column].to_numpy(dtype=np.float64, na_value=np.nan)


def _check_unique(side: str, table: pd.DataFrame) -> None:
    if repeated := cases(table[table.duplicated(list(CASE_COLUMNS))]):
        name = repeated[0].name
        raise WrongRequest(f"{side.upper()} holds the case {name} more than once; expected one row per case")


def _disjoint(base: pd.DataFrame, new: pd.DataFrame) -> str:
    """Return the columns in which the tables share no value, with the values."""
    columns = [name for name in CASE_COLUMNS if not set(base[name]) & set(new[name])]
    parts = [f"{name} is {_values(base[name])} in BASE and {_values(new[name])} in NEW" for name in columns]
    return f": {'; '.join(parts)}" if parts else ""


def _values(column: "pd.Series[Any]") -> str:
    values = ["empty" if pd.isna(value) else str(value) for value in column.unique()]
    return ", ".join(values[:NAMED]) + (" …" if len(values) > NAMED else "")
