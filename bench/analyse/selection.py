"""The selection of a table's rows, by an expression or by the most important points."""

import ast
from typing import Any

import numpy as np
import pandas as pd

from bench.analyse.rows import UNTRIED
from bench.plan.case import POINT_COLUMNS
from bench.plan.errors import WrongRequest, unknown_names
from bench.store.table import COLUMNS

ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Eq, ast.NotEq, ast.Lt,
    ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple,
)  # fmt: skip
"""The nodes that an expression may have; none can run code."""

LISTED = "the columns in results/README.md"
"""The place where column names are listed."""

RULE = "columns compared by ==, !=, <, <=, >, >=, in, joined by and, or, not, such as batch > 1 and dtype == 'float32'"


def where(table: pd.DataFrame, expression: str) -> pd.DataFrame:
    """Return the rows of a table of results for which an expression of `DataFrame.query` holds.

    A missing value equals nothing, and is neither above nor below anything.
    Raises WrongRequest with the rule for an invalid expression or an unknown column.
    """
    wrong = f"--where {expression!r} must be {RULE}"
    try:
        nodes = [*ast.walk(ast.parse(expression.strip(), mode="eval"))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise WrongRequest(wrong) from None
    if not all(isinstance(node, ALLOWED) for node in nodes):
        raise WrongRequest(wrong)
    for name in (node.id for node in nodes if isinstance(node, ast.Name)):
        if name not in COLUMNS:
            raise WrongRequest(f"{unknown_names('column', [name], COLUMNS, LISTED)}; put text values in quotes")
    try:
        holds = table.eval(expression.strip(), engine="python")
    except (TypeError, ValueError, KeyError, NotImplementedError) as error:
        raise WrongRequest(f"--where {expression!r}: {str(error).splitlines()[0]}") from None
    if not (isinstance(holds, pd.Series) and pd.api.types.is_bool_dtype(holds)):
        raise WrongRequest(wrong)
    return table[holds.fillna(False).astype(bool)]


def most_important(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the rows of the most important points, most important first; the rows of a point keep their order.

    Points with a case that went wrong come first, then points by the largest speed-up over the baseline, then points
    without a speed-up.
    """
    number = _by_point(table).ngroup().to_numpy()
    wrong = went_wrong(table).to_numpy()
    gain = table["speedup"].where(table["rank"] == 1).to_numpy(dtype=np.float64, na_value=-np.inf)
    facts = pd.DataFrame({"wrong": wrong, "gain": gain}).groupby(number).max()
    chosen = facts.sort_values(["wrong", "gain"], ascending=False, kind="stable").index[:count]
    place = pd.Series(range(len(chosen)), index=chosen).reindex(number).to_numpy()
    return table.iloc[np.argsort(place, kind="stable")[: np.count_nonzero(~np.isnan(place))]]  # NaN sorts to the end


def went_wrong(table: pd.DataFrame) -> "pd.Series[bool]":
    """Return for each row whether something went wrong."""
    return ~table["status"].isin(("ok", *UNTRIED))


def point_count(table: pd.DataFrame) -> int:
    """Return the number of points in a table."""
    return _by_point(table).ngroups


def _by_point(table: pd.DataFrame) -> "pd.api.typing.DataFrameGroupBy[Any, Any]":
    return table.groupby(list(POINT_COLUMNS), sort=False, dropna=False)
