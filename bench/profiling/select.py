"""Which cases of a run are profiled."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from bench.analyse.summary import winners
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import WrongRequest, unknown


def chosen(table: pd.DataFrame, selectors: Sequence[str], baseline: str) -> list[Case]:
    """Return the cases that the selectors name; without any, the winner and the baseline of each point.

    A selector is `column=value,column=value…`; a case must agree with all of one selector.
    Raises WrongRequest for an unknown column, and where no case that is ok agrees.
    """
    measured = table[table["status"] == "ok"]
    if measured.empty:
        raise WrongRequest("the run holds no case that is ok")
    if not selectors:
        return _winners_and_baselines(measured, baseline)
    cases = [case for selector in selectors for case in _agreeing(measured, selector)]
    return list(dict.fromkeys(cases))


def _agreeing(table: pd.DataFrame, selector: str) -> list[Case]:
    for condition in selector.split(","):
        column, equals, value = condition.partition("=")
        if not equals:
            raise WrongRequest(f"--case {selector}: must be column=value,column=value…, got {condition!r}")
        if column not in CASE_COLUMNS:
            raise unknown("column", column, CASE_COLUMNS)
        table = table[table[column].astype("string") == value]
    if table.empty:
        raise WrongRequest(f"--case {selector}: no case of the run that is ok agrees with it")
    return _cases(table)


def _winners_and_baselines(table: pd.DataFrame, baseline: str) -> list[Case]:
    cases = [_cases(rows) for rows in winners(table).values()]
    return [case for point in cases for case in point if case is point[0] or case.implementation == baseline]


def _cases(table: pd.DataFrame) -> list[Case]:
    rows: list[dict[str, Any]] = table[list(CASE_COLUMNS)].astype(object).to_dict("records")  # type: ignore[assignment]
    return [Case.from_columns(row) for row in rows]
