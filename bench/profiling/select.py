"""The choice of the cases of a run to profile."""

from collections.abc import Collection, Sequence

import pandas as pd

from bench.analyse.standing import by_rank
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import WrongRequest, unknown
from bench.plan.layers import LAYERS
from bench.show.rows import by_point
from bench.store.table import cases

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
        return _fastest_and_baselines(measured, baseline, {*cases(stepwise)})
    candidates = pd.concat([measured, stepwise]).drop_duplicates([*CASE_COLUMNS])
    return list(dict.fromkeys(case for selector in selectors for case in _agreeing(candidates, selector)))


def with_stages(selected: Sequence[Case], table: pd.DataFrame) -> list[Case]:
    """Return the cases, and after the last case of each point its stepwise, unless that failed there."""
    possible = {*cases(_stepwise(table, table[table["status"] == "ok"]))}
    last = {case.point: case for case in selected}
    extended: list[Case] = []
    for case in selected:
        stages = Case(case.point, STEPWISE)
        extended += [case, stages] if case is last[case.point] and stages in possible else [case]
    return list(dict.fromkeys(extended))


def _stepwise(table: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Return a row of stepwise for each point with a case that is ok, unless stepwise itself failed there.

    Only layers with a name have steps.
    """
    named = measured[measured["layer"].isin(list(LAYERS))]
    rows = named.assign(implementation=STEPWISE).drop_duplicates([*CASE_COLUMNS])
    failed = {*cases(table[(table["implementation"] == STEPWISE) & (table["status"] != "ok")])}
    return rows[pd.Series([case not in failed for case in cases(rows)], index=rows.index, dtype=bool)]


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
    return cases(table)


def _fastest_and_baselines(measured: pd.DataFrame, baseline: str, stepwise: Collection[Case]) -> list[Case]:
    selected: list[Case] = []
    for point, rows in by_point(measured).items():
        names = [row["implementation"] for row in by_rank(rows)]
        selected += [Case(point, name) for name in names if name in (names[0], baseline)]
        selected += {Case(point, STEPWISE)} & {*stepwise}
    return list(dict.fromkeys(selected))
