"""Comparisons of two tables of results: changes of speed with intervals, and verdicts."""

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.analyse.comparable import with_one_name
from bench.analyse.summary import summarise
from bench.plan import verdicts
from bench.plan.case import CASE_COLUMNS, POINT_COLUMNS
from bench.plan.errors import NotComparable, WrongRequest, unknown
from bench.plan.verdicts import JUDGED, MARGIN, REGRESSIONS
from bench.stats.between_runs import BetweenRuns, of_changes
from bench.stats.estimates import PAIR, Array, Estimates, combined, of_ratios, ratios
from bench.stats.levels import relative
from bench.stats.limits import (
    EQUIVALENCE,
    LEVEL,
    Limits,
    Truths,
    Verdicts,
    first_that_holds,
    holm,
    judged,
)
from bench.store.record import Record
from bench.store.table import baseline_of, cases

SIDES = ("base", "new")

SPEEDUP = ("speedup", "speedup_low", "speedup_high", "log_ratio_freedom")

SHOWN = (
    "status",
    "detail",
    *SPEEDUP,
    "log_time_error",
    "processes",
    "latency_s",
    "standing",
    "slowdown_low",
    "slowdown_high",
)
"""Columns of both sides that a comparison keeps."""

COLUMNS = (*CASE_COLUMNS, *(f"{side}_{name}" for name in SHOWN for side in SIDES))

WELL = 3
"""A row that both runs measured in so many processes was measured well. In a race these are the ones that may be the
fastest."""

MOST_NAMED = 4
"""The most values of a column that an error names, so that it stays one line."""


def compare(
    base: pd.DataFrame,
    new: pd.DataFrame,
    *,
    margin: float = MARGIN,
    equivalence: float = EQUIVALENCE,
    level: float = LEVEL,
    by_level: bool = True,
) -> pd.DataFrame:
    """Return one row per case of either table: the change of its speed, the interval and the verdict.

    `change` is NEW's speed over BASE's, above 1 if NEW is faster, relative to the common level of the rows of the point
    that both runs measured well; `by_level` says whether. Else, or if there are too few of these or the baseline moved
    against them, it is that of the speed-up over the baseline. `change_low` and `change_high` are its 95 % interval.
    Each side has the error of its own run.
    `p` tests whether the change exceeds the margin; `p_holm` is adjusted for the number of judged rows.
    Runs differ by more than their errors; the rows themselves tell by how much (`compared`).
    Rows are in the order of BASE, then of NEW. If a table names no baseline, the baseline's rows are open,
    because their ratios are 1 without scatter.
    Raises NotComparable if no case is shared or the baselines differ, WrongRequest for impossible limits or a repeated
    case.
    """
    return compared(base, new, Limits(margin, equivalence, level), by_level=by_level)[0]


def compared(
    base: pd.DataFrame, new: pd.DataFrame, limits: Limits, *, by_level: bool = True
) -> tuple[pd.DataFrame, BetweenRuns]:
    """Return the rows of `compare`, and what two runs differ by beyond the errors of their rows.

    The machine's state differs from one run to another, and with it the ratios of unlike kernels.
    """
    matched = _match(base, new)
    baseline = _shared_baseline(base, new)
    by_status = _by_status(matched, baseline)
    within, is_by_level = _changes(matched, baseline if by_level else None)
    between = of_changes(within, matched["implementation"].tolist())
    changes = _sum((1, 1), within, _run_errors(between, len(matched)))
    p = limits.p_changed(changes)
    p_holm = holm(p)
    of_rows = np.where(by_status == "", judged(changes, p_holm < limits.level, limits), by_status)
    columns = zip(("change", "change_low", "change_high", "p", "p_holm"), (*ratios(changes), p, p_holm), strict=True)
    rows = matched[list(COLUMNS)].assign(
        **{name: pd.array(values, dtype="Float64") for name, values in columns},
        verdict=pd.array(of_rows, dtype="string"),
        by_level=pd.array(is_by_level, dtype="boolean"),
    )
    return rows, between


def regressed(comparison: pd.DataFrame, verdicts: Collection[str] = REGRESSIONS) -> bool:
    """Return whether any row of a comparison has one of these verdicts."""
    return bool(comparison["verdict"].isin(list(verdicts)).any())


def is_compared(comparison: pd.DataFrame) -> bool:
    """Return whether any row compares both runs: by a ratio, or by a status that changed."""
    judged_rows = comparison["verdict"].isin(JUDGED) & comparison["change"].notna()
    return bool((judged_rows | comparison["verdict"].isin([verdicts.NEWLY_FAILING, verdicts.FIXED])).any())


def rebased(base: Sequence[Record], new: Sequence[Record], baseline: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables of two runs with ratios to this baseline; raises WrongRequest if one didn't measure it."""
    in_base, in_new = (
        dict.fromkeys(record.case.implementation for record in records if record.status == "ok")
        for records in (base, new)
    )
    names = [name for name in in_base if name in in_new]
    if baseline not in names:
        raise unknown("baseline", baseline, names or ["the shared implementations, of which there are none"])
    return summarise(base, baseline), summarise(new, baseline)


def _match(base: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return every case of either table once, with the columns of both sides under the prefixes base_ and new_.

    Raises NotComparable if no case is shared, WrongRequest if a table holds a case twice.
    """
    keys = list(CASE_COLUMNS)
    base, new = with_one_name(base, new)
    matched = pd.concat([base[keys], new[keys]], ignore_index=True).drop_duplicates(ignore_index=True)
    for side, table in zip(SIDES, (base, new), strict=True):
        if (repeated := table.duplicated(keys)).any():
            name = cases(table[repeated])[0].name
            raise WrongRequest(f"{side.upper()} holds the case {name} more than once; expected one row per case")
        columns = {name: f"{side}_{name}" for name in SHOWN}
        values = table[[*keys, *columns]].rename(columns=columns).assign(**{f"{side}_present": True})
        matched = matched.merge(values, how="left", on=keys)
    if not (_present(matched, "base") & _present(matched, "new")).any():
        raise NotComparable(f"BASE and NEW share no case{_disjoint(base, new)}")
    return matched


def _present(matched: pd.DataFrame, side: str) -> Truths:
    return matched[f"{side}_present"].notna().to_numpy(dtype=bool)


def _disjoint(base: pd.DataFrame, new: pd.DataFrame) -> str:
    """Return the columns in which the tables share no value, with the values."""
    columns = [name for name in CASE_COLUMNS if not set(base[name]) & set(new[name])]
    parts = [f"{name} is {_values(base[name])} in BASE and {_values(new[name])} in NEW" for name in columns]
    return f": {'; '.join(parts)}" if parts else ""


def _values(column: "pd.Series[Any]") -> str:
    values = ["empty" if pd.isna(value) else str(value) for value in column.unique()]
    return ", ".join(values[:MOST_NAMED]) + (" …" if len(values) > MOST_NAMED else "")


def _shared_baseline(base: pd.DataFrame, new: pd.DataFrame) -> str | None:
    """Return the implementation that the speed-ups of both tables refer to, None if a table doesn't say it.

    Raises NotComparable if they refer to two.
    """
    in_base, in_new = baseline_of(base), baseline_of(new)
    if in_base and in_new and in_base != in_new:
        raise NotComparable(f"speed-ups refer to {in_base} in BASE and to {in_new} in NEW; expected one baseline")
    return in_base if in_new else None


def _by_status(matched: pd.DataFrame, baseline: str | None) -> Verdicts:
    """Return the verdicts that need no statistics, empty for the rows that are to be judged."""
    in_base, in_new = (_present(matched, side) for side in SIDES)
    base_ok, new_ok = (matched[f"{side}_status"].eq("ok").fillna(False).to_numpy(dtype=bool) for side in SIDES)
    return first_that_holds(
        {
            verdicts.MISSING: in_base & ~in_new,
            verdicts.NEW: in_new & ~in_base,
            verdicts.NEWLY_FAILING: base_ok & ~new_ok,
            verdicts.FIXED: new_ok & ~base_ok,
            verdicts.NOT_MEASURED: ~base_ok & ~new_ok,
            verdicts.BASELINE: matched["implementation"].isin([baseline]).to_numpy(dtype=bool),
        },
        default="",
    )


def _changes(matched: pd.DataFrame, baseline: str | None) -> tuple[Estimates, Truths]:
    """Return the changes of the log speeds with the errors of both sides, and which are relative to a common level.

    The others, and all without a `baseline`, are those of speed-ups, as is the baseline's. What has no interval on a
    side can't be judged.
    """
    sides = [of_ratios(*_numbers(matched, [f"{side}_{name}" for name in SPEEDUP]), confidence=PAIR) for side in SIDES]
    times = [_numbers(matched, [f"{side}_log_time_error"])[0] for side in SIDES]
    changes, alone = _difference(sides, [side.error for side in sides]), _difference(sides, times)
    is_well = (matched[["base_processes", "new_processes"]].min(axis=1) >= WELL).fillna(False).to_numpy(dtype=bool)
    is_baseline = matched["implementation"].isin([baseline]).to_numpy(dtype=bool)
    is_by_level = np.zeros(len(matched), dtype=bool)
    for places in matched.groupby(list(POINT_COLUMNS), sort=False, dropna=False).indices.values():
        rows = np.asarray(places)
        if not is_baseline[rows].any():
            continue
        place = int(np.argmax(is_baseline[rows]))
        of = relative(Estimates(*(part[rows] for part in vars(alone).values())), is_well[rows], place)
        if of is not None:
            others = np.arange(len(rows)) != place
            is_by_level[rows[others]] = True
            for name, part in vars(of).items():
                getattr(changes, name)[rows[others]] = part[others]
    return changes, is_by_level


def _difference(sides: Sequence[Estimates], errors: Sequence[Array]) -> Estimates:
    """Return the second of two sides less the first, with these errors; one that is not above 0 is none."""
    pairs = zip(sides, errors, strict=True)
    return _sum((-1, 1), *(Estimates(of.value, np.where(error > 0, error, np.nan), of.freedom) for of, error in pairs))


def _numbers(table: pd.DataFrame, columns: Sequence[str]) -> list[Array]:
    return [table[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in columns]


def _sum(signs: tuple[int, int], one: Estimates, other: Estimates) -> Estimates:
    parts = (np.stack([getattr(of, name) for of in (one, other)], axis=-1) for name in ("value", "error", "freedom"))
    return combined(np.array(signs, dtype=np.float64), Estimates(*parts))


def _run_errors(by_rows: BetweenRuns, count: int) -> Estimates:
    """Return the error of each of `count` rows that comes from different runs; 0 if it isn't known."""
    pair = BetweenRuns(0.0, math.inf) if math.isnan(by_rows.sd) else by_rows
    return Estimates(*(np.full(count, each) for each in (0.0, pair.sd, pair.freedom)))
