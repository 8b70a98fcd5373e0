"""Whether two runs can be compared: their conditions, the machine's state, and other causes of changes."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.analyse.change import Change
from bench.analyse.rows import grouped
from bench.plan.case import CASE_COLUMNS, HUGE, RETAINED
from bench.plan.verdicts import CHANGED
from bench.store.environment import Environment, differences
from bench.store.saved_run import SavedRun
from bench.store.table import cases

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


def common_shift(changes: Sequence[Change]) -> CommonShift | None:
    """Return the shift if most judged rows, of several implementations, became slower, or became faster; else None.

    It proposes as baseline the implementation with the most judged rows; of several, the one that changed most like
    all others, because one that also changed by itself would mislead.
    """
    rows = [change for change in changes if not math.isnan(change.p)]
    for verdict in CHANGED:
        moved = [change for change in rows if change.verdict == verdict]
        names = len({change.case.implementation for change in moved})
        if len(moved) > MOST * len(rows) and names >= FEWEST:
            return CommonShift(verdict, len(moved), len(rows), names, _typical(rows))
    return None


def raw_change(changes: Sequence[Change]) -> float | None:
    """Return how many times as long the median row takes in NEW, None if that is not known."""
    times = [(change.new.get("latency_s"), change.base.get("latency_s")) for change in changes]
    return statistics.median(known) if (known := [new / base for new, base in times if new and base]) else None


def is_steady(factor: float) -> bool:
    """Return whether times that changed by a factor are everyday drift, and not another speed of the machine.

    Ratios between dissimilar kernels shift with the machine's speed: when eager took 1.4 to 1.5 times as long, manual
    and stepwise seemed 6 to 12 % slower beside it, though their code had not changed.
    """
    return abs(math.log(factor)) <= math.log1p(STEADY)


def _typical(rows: Sequence[Change]) -> str:
    middle = statistics.median(math.log(change.ratio.value) for change in rows)
    of = grouped(rows, lambda change: change.case.implementation)
    apart = {name: abs(statistics.median(math.log(each.ratio.value) - middle for each in of[name])) for name in of}
    return min(of, key=lambda name: (-len(of[name]), apart[name]))


def unmatched(base: pd.DataFrame, new: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return for each side the implementations that only it measured, at points that both measured.

    They share memory, caches and clock with the others, and can change ratios. Measured within ten minutes, with three
    processes each: a speed-up of sdpa of 1.15 in two runs with manual, stepwise and online, and of 1.20 and 1.21 in two
    with manual, online and two compiled layers.
    """
    in_base, in_new = ({*cases(table[table["status"] == "ok"])} for table in (base, new))
    shared = {case.point for case in in_base} & {case.point for case in in_new}
    only_base, only_new = (
        sorted({case.implementation for case in alone if case.point in shared})
        for alone in (in_base - in_new, in_new - in_base)
    )
    return only_base, only_new
