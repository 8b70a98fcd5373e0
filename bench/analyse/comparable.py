"""Whether two runs can be compared: their conditions, the machine's state, and other causes of changes."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bench.plan.case import CASE_COLUMNS, HUGE, POINT_COLUMNS, RETAINED
from bench.plan.verdicts import BASELINE, CHANGED
from bench.store.environment import Environment, differences
from bench.store.saved_run import SavedRun

TOLERATED = {"load_1min": 1.0, "preflight.others_cores": 0.25, "preflight.spread": 0.1}
"""Smaller differences are ignored: a busy process, other work, or an unsteady clock makes larger ones."""

SHARE = 0.05
"""Other numbers, such as clocks, may differ by this share of the larger one: boosting alone moves a clock by less."""

PASSED_OVER = ("available_bytes", "preflight.switches")
"""Facts that differ between any two runs, or that are no state of the machine."""

MOST = 0.5
"""A shift changes more than this share of the judged rows: a change of the baseline changes all of them."""

FEWEST = 2
"""The fewest implementations of a shift: one that changes alone has more likely changed itself."""

STEADY = 0.15
"""If raw times changed by more than this share, the machine ran at another speed: some 12 % are everyday drift."""


def unlike_conditions(base: SavedRun, new: SavedRun) -> list[str]:
    """Return how the machines or the software of two runs differ.

    Their environments say it; if these are unknown or equal, the env_ids of shared cases do: a run that moved between
    machines has several.
    Raises WrongRequest for a path that holds no results.
    """
    before, after = base.environment, new.environment
    if before and after and (unlike := differences(before, after)):
        return unlike
    sides = with_one_name(base.table, new.table)
    both = sides[0].merge(sides[1], on=list(CASE_COLUMNS), suffixes=("_base", "_new"))
    pairs = both[["env_id_base", "env_id_new"]].drop_duplicates().fillna("unknown").to_numpy().tolist()
    moved = [f"env_id {old} against {young}" for old, young in pairs if old != young]
    good = both[(both["status_base"] == "ok") & (both["status_new"] == "ok")]
    asked = [good[f"huge_bytes_{side}"].notna() for side in ("base", "new")]
    count = int((asked[0] != asked[1]).sum())
    return [*moved, *([f"huge pages: one side alone asked for them, in {count} cases"] if count else [])]


def with_one_name(base: pd.DataFrame, new: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two tables in which rows of `retained-huge` are of `retained` if one table alone has that older name."""
    if (HUGE in {*base["allocator"]}) == (HUGE in {*new["allocator"]}):
        return base, new
    base, new = (
        each if RETAINED in {*each["allocator"]} else each.assign(allocator=each["allocator"].replace(HUGE, RETAINED))
        for each in (base, new)
    )
    return base, new


def state_differences(base: Environment, new: Environment) -> dict[str, tuple[Any, Any]]:
    """Return both values of each fact of the machine's state that differs notably, if both runs recorded it.

    Dots join the names of nested facts.
    """
    before, after = dict(_flat(base.state)), dict(_flat(new.state))
    both = {name: (before[name], after[name]) for name in before if name in after}
    return {name: values for name, values in both.items() if _differ(name, *values)}


def _flat(state: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in state.items():
        name = f"{prefix}{key}"
        if name in PASSED_OVER:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _differ(name: str, base: Any, new: Any) -> bool:
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in (base, new)):
        return bool(base != new)
    return bool(abs(new - base) > TOLERATED.get(name, SHARE * max(abs(base), abs(new))))


@dataclass(frozen=True)
class CommonShift:
    """`moved` of the `judged` rows changed in one direction; `baseline` is the implementation to refer to instead."""

    verdict: str
    moved: int
    judged: int
    implementations: int
    baseline: str


def common_shift(comparison: pd.DataFrame) -> CommonShift | None:
    """Return the shift if most judged rows, of several implementations, became slower, or became faster; else None.

    It proposes as baseline the implementation with the most judged rows; of several, the one that changed most like
    all others, because one that also changed by itself would mislead.
    """
    rows = comparison[comparison["p"].notna() & comparison["verdict"].ne(BASELINE)]
    for verdict in CHANGED:
        moved = rows[rows["verdict"] == verdict]
        names = moved["implementation"].nunique()
        if len(moved) > MOST * len(rows) and names >= FEWEST:
            return CommonShift(verdict, len(moved), len(rows), names, _typical(rows))
    return None


def raw_change(comparison: pd.DataFrame) -> float | None:
    """Return how many times as long the median row takes in NEW, None if that is not known."""
    factor = (comparison["new_latency_s"].astype("Float64") / comparison["base_latency_s"].astype("Float64")).median()
    return None if pd.isna(factor) else float(factor)


def is_steady(factor: float) -> bool:
    """Return whether times that changed by a factor are everyday drift, and not another speed of the machine.

    Ratios between dissimilar kernels shift with the machine's speed: when eager took 1.4 to 1.5 times as long, manual
    and stepwise seemed 6 to 12 % slower beside it, though their code had not changed.
    """
    return abs(math.log(factor)) <= math.log1p(STEADY)


def _typical(rows: pd.DataFrame) -> str:
    logs = pd.Series(np.log(rows["change"].to_numpy(dtype=np.float64)), index=rows.index)
    by_name = (logs - logs.median()).groupby(rows["implementation"], sort=False)
    order = pd.DataFrame({"rows": -by_name.size(), "distance": by_name.median().abs()})
    return str(order.sort_values(["rows", "distance"], kind="stable").index[0])


def unmatched(base: pd.DataFrame, new: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return for each side the implementations that only it measured, at points that both measured.

    They share memory, caches and clock with the others, and can change ratios. Measured within ten minutes, with three
    processes each: a speed-up of sdpa of 1.15 in two runs with manual, stepwise and online, and of 1.20 and 1.21 in two
    with manual, online and two compiled layers.
    """
    point = list(POINT_COLUMNS)
    in_base, in_new = (table.loc[table["status"] == "ok", [*point, "implementation"]] for table in (base, new))
    shared = in_base[point].merge(in_new[point], on=point).drop_duplicates()
    sides = (in_base.merge(shared, on=point), in_new.merge(shared, on=point))
    both = sides[0].merge(sides[1], how="outer", on=[*point, "implementation"], indicator=True)
    only_base, only_new = (
        sorted(both.loc[both["_merge"] == side, "implementation"].unique()) for side in ("left_only", "right_only")
    )
    return only_base, only_new
