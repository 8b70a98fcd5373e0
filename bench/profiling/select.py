"""The choice of a run's cases that are profiled."""

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from bench.analyse.fastest import fastest_first
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import WrongRequest, unknown
from bench.plan.layers import LAYERS
from bench.show.rows import by_point

STEPWISE = "stepwise"
"""The implementation whose profile has stages; it can be chosen at every point, even if the run didn't measure it."""


def chosen(table: pd.DataFrame, selectors: Sequence[str], baseline: str) -> list[Case]:
    """Return the cases that match the selectors; without any, the fastest, the baseline and stepwise of each point.

    A selector is `column=value,column=value…`; a case must match all conditions of one selector.
    Raises WrongRequest for an unknown column, and if no case with the status ok matches.
    """
    measured = table[table["status"] == "ok"]
    if measured.empty:
        raise WrongRequest("the run holds no case that is ok")
    stepwise = _stepwise(table, measured)
    if not selectors:
        return _fastest_and_baselines(measured, baseline, {*_cases(stepwise)})
    candidates = pd.concat([measured, stepwise]).drop_duplicates([*CASE_COLUMNS])
    cases = [case for selector in selectors for case in _agreeing(candidates, selector)]
    return list(dict.fromkeys(cases))


def with_stages(cases: Sequence[Case], table: pd.DataFrame) -> list[Case]:
    """Return the cases, and after the last case of each point its stepwise, unless that failed there."""
    possible = {*_cases(_stepwise(table, table[table["status"] == "ok"]))}
    last = {case.point: case for case in cases}
    extended: list[Case] = []
    for case in cases:
        stages = Case(case.point, STEPWISE)
        extended += [case, stages] if case is last[case.point] and stages in possible else [case]
    return list(dict.fromkeys(extended))


def _stepwise(table: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Return a row of stepwise for each point with a case that is ok, unless stepwise itself failed there.

    Only layers with a name have steps.
    """
    rows = (
        measured[measured["layer"].isin(list(LAYERS))].assign(implementation=STEPWISE).drop_duplicates([*CASE_COLUMNS])
    )
    failed = {*_cases(table[(table["implementation"] == STEPWISE) & (table["status"] != "ok")])}
    return rows[pd.Series([case not in failed for case in _cases(rows)], index=rows.index, dtype=bool)]


def _agreeing(table: pd.DataFrame, selector: str) -> list[Case]:
    for condition in selector.split(","):
        column, equals, value = condition.partition("=")
        if not equals:
            raise WrongRequest(f"--case {selector}: must be column=value,column=value…, got {condition!r}")
        if column not in CASE_COLUMNS:
            raise unknown("column", column, CASE_COLUMNS)
        agreeing = table[table[column].astype("string") == value]
        if agreeing.empty:
            values = ", ".join(table[column].astype("string").dropna().unique()) or "nothing"
            raise WrongRequest(
                f"--case {selector}: no case of the run that is ok agrees with {condition}; "
                f"the others have {column} = {values}"
            )
        table = agreeing
    return _cases(table)


def _fastest_and_baselines(measured: pd.DataFrame, baseline: str, stepwise: Collection[Case]) -> list[Case]:
    cases: list[Case] = []
    for point, rows in by_point(measured).items():
        first, *others = (row["implementation"] for row in fastest_first(rows))
        cases += [Case(point, name) for name in (first, *others) if name in (first, baseline)]
        cases += [case for case in [Case(point, STEPWISE)] if case in stepwise]
    return list(dict.fromkeys(cases))


def _cases(table: pd.DataFrame) -> list[Case]:
    rows: list[dict[str, Any]] = table[list(CASE_COLUMNS)].astype(object).to_dict("records")  # type: ignore[assignment]
    return [Case.from_columns(row) for row in rows]
