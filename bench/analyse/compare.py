"""Two tables of results against each other: what became faster, slower or neither, and how sure that is."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.analyse.significance import Array, Difference, Sample, difference, half_width, holm, p_beyond, p_within
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import NotComparable, WrongRequest

MARGIN = 0.01
"""A change of 1 % or less is not worth acting on: builds and memory layouts alone move a ratio by some 0.2 %."""

EQUIVALENCE = 0.02
"""Rows within 2 % count as equivalent: twice the margin, so that 5 to 10 processes can show it."""

LEVEL = 0.01
"""The chance of any false faster or slower in a whole table: a gate that runs daily errs once in 100 tables."""

EQUIVALENCE_LEVEL = 0.05
"""The level of each of the two one-sided tests, that is a 90 % interval inside the bounds: the test's usual level.

It holds for a row, not for the table, because a wrong "equivalent" hides one change and raises no alarm.
"""

VERDICTS = {
    "slower": "slower by more than the margin",
    "newly failing": "ok in BASE, not in NEW",
    "missing": "only in BASE",
    "inconclusive": "nothing is shown, neither a change nor its absence",
    "failing": "ok in neither",
    "new": "only in NEW",
    "fixed": "ok in NEW, not in BASE",
    "faster": "faster by more than the margin",
    "equivalent": "any change is within the bounds of equivalence",
    "baseline": "1 by construction, not judged",
}
"""Every verdict with its meaning, worst first."""

REGRESSIONS = ("slower", "newly failing")

Truths = npt.NDArray[np.bool_]
Verdicts = npt.NDArray[np.str_]

SMALLEST_SCATTER = 1e-9
"""Processes that agree better are taken to show no scatter: a slot of 1 ms on a clock of 1 ns can't resolve it."""

NAMED = 4
"""Values of a column that an error names, so that it stays one line."""

SIDES = ("base", "new")
SHOWN = ("status", "detail", "speedup", "processes", "latency_s")


def compare(
    base: pd.DataFrame,
    new: pd.DataFrame,
    *,
    margin: float = MARGIN,
    equivalence: float = EQUIVALENCE,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Return one row per case of either table: the change of its speed-up, the interval and the verdict.

    `change` is NEW's speed-up over BASE's, above 1 where NEW is faster relative to its own run's baseline;
    `change_low` and `change_high` are its 95 % interval over processes.
    `p` tests whether the change exceeds the margin, `p_holm` is adjusted for all rows that are judged.
    Rows stand in the order of BASE, then of NEW.
    Raises NotComparable where no case or no baseline is shared, WrongRequest for impossible limits or a repeated case.
    """
    _check_limits(margin, equivalence, level)
    matched = _match(base, new)
    settled = _by_status(matched, _shared_baselines(base, new))
    changes = _changes(matched)
    beyond = p_beyond(changes, math.log1p(margin))
    adjusted = holm(beyond)
    half = half_width(changes)
    numbers = {
        "change": np.exp(changes.value),
        "change_low": np.exp(changes.value - half),
        "change_high": np.exp(changes.value + half),
        "p": beyond,
        "p_holm": adjusted,
    }
    return matched[_columns()].assign(
        **{name: pd.array(values, dtype="Float64") for name, values in numbers.items()},
        verdict=_verdicts(settled, changes, changed=adjusted < level, bound=math.log1p(equivalence)),
    )


def regressed(comparison: pd.DataFrame) -> bool:
    """Return whether a comparison holds a row that became slower or fails newly."""
    return bool(comparison["verdict"].isin(REGRESSIONS).any())


def _check_limits(margin: float, equivalence: float, level: float) -> None:
    if not 0 <= margin < math.inf:
        raise WrongRequest(f"margin = {margin} must be a number of at least 0, such as {MARGIN} for 1 %")
    if not 0 < equivalence < math.inf:
        raise WrongRequest(f"equivalence = {equivalence} must be a number above 0, such as {EQUIVALENCE} for 2 %")
    if not 0 < level < 1:
        raise WrongRequest(f"level = {level} must lie between 0 and 1, such as {LEVEL}")


def _match(base: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return every case of either table once, with the columns of both sides under the prefixes base_ and new_."""
    keys = list(CASE_COLUMNS)
    matched = pd.concat([base[keys], new[keys]], ignore_index=True).drop_duplicates(ignore_index=True)
    for side, table in zip(SIDES, (base, new), strict=True):
        _check_unique(side, table)
        named = {name: f"{side}_{name}" for name in (*SHOWN, "log_ratio_sd")}
        values = table[[*keys, *named]].rename(columns=named).assign(**{f"{side}_present": True})
        matched = matched.merge(values, how="left", on=keys)
    if not (_present(matched, "base") & _present(matched, "new")).any():
        raise NotComparable(f"BASE and NEW share no case{_apart(base, new)}")
    return matched


def _check_unique(side: str, table: pd.DataFrame) -> None:
    repeated = table.duplicated(list(CASE_COLUMNS))
    if repeated.any():
        first = table[repeated].iloc[0]
        name = Case.from_columns({str(key): value for key, value in first.items()}).name
        raise WrongRequest(f"{side.upper()} holds the case {name} more than once; expected one row per case")


def _apart(base: pd.DataFrame, new: pd.DataFrame) -> str:
    """Return the columns that no value of is in both tables, with the values."""
    columns = [name for name in CASE_COLUMNS if not set(base[name]) & set(new[name])]
    parts = [f"{name} is {_values(base[name])} in BASE and {_values(new[name])} in NEW" for name in columns]
    return f": {'; '.join(parts)}" if parts else ""


def _values(column: "pd.Series[Any]") -> str:
    values = [str(value) for value in column.unique()]
    return ", ".join(values[:NAMED]) + (" …" if len(values) > NAMED else "")


def _shared_baselines(base: pd.DataFrame, new: pd.DataFrame) -> set[str]:
    """Return the implementation that the speed-ups of both tables refer to, empty where a table doesn't hold it."""
    in_base, in_new = _baselines(base), _baselines(new)
    if in_base and in_new and not in_base & in_new:
        base_name, new_name = ", ".join(sorted(in_base)), ", ".join(sorted(in_new))
        raise NotComparable(f"speed-ups refer to {base_name} in BASE and to {new_name} in NEW; expected one baseline")
    return in_base & in_new


def _baselines(table: pd.DataFrame) -> set[str]:
    """Return the implementations whose every ratio is exactly 1 without scatter, as only the baseline's are."""
    rated = table[["implementation", "speedup", "log_ratio_sd"]].dropna(subset="speedup")
    itself = rated["speedup"].eq(1) & rated["log_ratio_sd"].fillna(0).eq(0)
    every = itself.groupby(rated["implementation"]).all()
    return set(every.index[every.to_numpy(dtype=bool)])


def _by_status(matched: pd.DataFrame, baselines: set[str]) -> Verdicts:
    """Return the verdicts that need no statistics, empty for the rows that are to be judged."""
    in_base, in_new = _present(matched, "base"), _present(matched, "new")
    base_ok, new_ok = _is_ok(matched, "base"), _is_ok(matched, "new")
    return _first_that_holds(
        {
            "missing": in_base & ~in_new,
            "new": in_new & ~in_base,
            "newly failing": base_ok & ~new_ok,
            "fixed": new_ok & ~base_ok,
            "failing": ~base_ok & ~new_ok,
            "baseline": matched["implementation"].isin(baselines).to_numpy(dtype=bool),
        },
        default="",
    )


def _changes(matched: pd.DataFrame) -> Difference:
    """Return the change of the logarithm of each speed-up; rows that can't be judged have no standard error."""
    base, new = (
        Sample(
            _logarithm(_numbers(matched, f"{side}_speedup")),
            _scatter(_numbers(matched, f"{side}_log_ratio_sd")),
            _numbers(matched, f"{side}_processes"),
        )
        for side in SIDES
    )
    return difference(base, new)


def _verdicts(
    settled: Verdicts, changes: Difference, changed: Truths, bound: float
) -> pd.api.extensions.ExtensionArray:
    judged = _first_that_holds(
        {
            "faster": changed & (changes.value > 0),
            "slower": changed & (changes.value < 0),
            "equivalent": p_within(changes, bound) < EQUIVALENCE_LEVEL,
        },
        default="inconclusive",
    )
    return pd.array(np.where(settled == "", judged, settled), dtype="string")


def _first_that_holds(conditions: dict[str, Truths], default: str) -> Verdicts:
    return np.select(list(conditions.values()), [np.array(name) for name in conditions], default=np.array(default))


def _present(matched: pd.DataFrame, side: str) -> Truths:
    return matched[f"{side}_present"].notna().to_numpy(dtype=bool)


def _is_ok(matched: pd.DataFrame, side: str) -> Truths:
    return matched[f"{side}_status"].eq("ok").fillna(False).to_numpy(dtype=bool)


def _numbers(matched: pd.DataFrame, column: str) -> Array:
    return matched[column].to_numpy(dtype=np.float64, na_value=np.nan)


def _logarithm(ratios: Array) -> Array:
    return np.log(np.where(ratios > 0, ratios, np.nan))


def _scatter(sd: Array) -> Array:
    return np.where(sd < SMALLEST_SCATTER, 0.0, sd)


def _columns() -> list[str]:
    return [*CASE_COLUMNS, *(f"{side}_{name}" for name in SHOWN for side in SIDES)]
