"""Which rows of a table are shown: those of an expression (`num_tokens>=577`), or of the most important points."""

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from bench.analyse.rows import UNTRIED
from bench.plan.case import COLUMNS as POINT
from bench.plan.case import POINT_COLUMNS
from bench.plan.columns import TRUTHS
from bench.plan.errors import WrongRequest, unknown
from bench.store.table import COLUMNS, NUMBER, TEXT, TRUTH, WHOLE

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
"""How a column may be compared with a value; longer signs come first."""

CONDITION = re.compile(rf"\s*(\w+)\s*({'|'.join(OPERATORS)})\s*(.+?)\s*")
AND = re.compile(r"\s+and\s+")
LETTERS = {str(column.words)[0]: name for name, column in POINT.items() if str(column.words)[1:] == "={}"}
"""The letters by which tables call columns: N for num_tokens."""

CONDITION_RULE = "COLUMN OPERATOR VALUE, joined by `and`, such as num_tokens>=577 and implementation==sdpa"


def where(table: pd.DataFrame, expression: str) -> pd.DataFrame:
    """Return the rows of a table of results for which an expression holds; a missing value keeps no condition.

    Raises WrongRequest with the rule if it is none, if it names no column, or if the value is impossible.
    """
    for condition in AND.split(expression.strip()):
        table = table[_holds(table, condition)]
    return table


def _holds(table: pd.DataFrame, condition: str) -> "pd.Series[bool]":
    match = CONDITION.fullmatch(condition)
    if match is None:
        raise WrongRequest(f"--where {condition!r} must be {CONDITION_RULE}")
    name, sign, word = match.groups()
    name = LETTERS.get(name, name)
    if name not in COLUMNS:
        raise unknown("column", name, COLUMNS)
    value, kind = word.strip("'\""), COLUMNS[name]
    if kind in (TEXT, TRUTH) and sign not in ("==", "=", "!="):
        raise WrongRequest(f"--where {condition!r}: {name} is no number; it can be compared by == and != only")
    holds: pd.Series[bool] = OPERATORS[sign](table[name], _value(condition, kind, value)).fillna(False).astype(bool)
    return holds


def _value(condition: str, kind: str, word: str) -> Any:
    try:
        if kind in (WHOLE, NUMBER):
            return float(word)
        return TRUTHS[word.lower()] if kind == TRUTH else word
    except (ValueError, KeyError):
        wanted = "a number" if kind in (WHOLE, NUMBER) else "true or false"
        raise WrongRequest(f"--where {condition!r}: {word!r} must be {wanted}") from None


def most_important(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the rows of the most important points, these first; the rows of a point keep their order.

    First come points at which a case went wrong, then those at which the fastest is the most times as fast as the
    baseline, then those without a speed-up.
    """
    number = _by_point(table).ngroup().to_numpy()
    wrong = went_wrong(table).to_numpy()
    gain = table["speedup"].where(table["rank"] == 1).to_numpy(dtype=np.float64, na_value=-np.inf)
    facts = pd.DataFrame({"wrong": wrong, "gain": gain}).groupby(number).max()
    chosen = facts.sort_values(["wrong", "gain"], ascending=False, kind="stable").index[:count]
    place = pd.Series(range(len(chosen)), index=chosen).reindex(number).to_numpy()
    return table.iloc[np.argsort(place, kind="stable")[: np.count_nonzero(~np.isnan(place))]]  # NaN sorts to the end


def went_wrong(table: pd.DataFrame) -> "pd.Series[bool]":
    """Return of each row whether something went wrong."""
    return ~table["status"].isin(("ok", *UNTRIED))


def point_count(table: pd.DataFrame) -> int:
    """Return the number of points in a table."""
    return _by_point(table).ngroups


def _by_point(table: pd.DataFrame) -> "pd.api.typing.DataFrameGroupBy[Any, Any]":
    return table.groupby(list(POINT_COLUMNS), sort=False, dropna=False)
