"""Causes other than the code that may change ratios: the baseline, the machine's speed, other implementations."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.plan.case import POINT_COLUMNS
from bench.stats.limits import CHANGED

MOST = 0.5
"""A shift changes more than this share of the judged rows: a change of the baseline changes all of them."""

FEWEST = 2
"""The fewest implementations of a shift: one that changes alone has more likely changed itself."""

STEADY = 0.15
"""If raw times changed by more than this share, the machine ran at another speed: some 12 % are everyday drift."""


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
    rows = comparison[comparison["p"].notna() & comparison["verdict"].ne("baseline")]
    for verdict in CHANGED:
        moved = rows[rows["verdict"] == verdict]
        names = moved["implementation"].nunique()
        if len(moved) > MOST * len(rows) and names >= FEWEST:
            return CommonShift(verdict, len(moved), len(rows), names, _typical(rows))
    return None


def speed_change(comparison: pd.DataFrame) -> float | None:
    """Return how many times as long the median row takes in NEW, None if that is within STEADY or not known.

    Ratios between dissimilar kernels shift with the machine's speed: when eager took 1.4 to 1.5 times as long, manual
    and stepwise seemed 6 to 12 % slower beside it, though their code had not changed.
    """
    factor = (comparison["new_latency_s"].astype("Float64") / comparison["base_latency_s"].astype("Float64")).median()
    return None if pd.isna(factor) or abs(np.log(factor)) <= np.log1p(STEADY) else float(factor)


def _typical(rows: pd.DataFrame) -> str:
    logs = pd.Series(np.log(rows["change"].to_numpy(dtype=np.float64)), index=rows.index)
    by_name = (logs - logs.median()).groupby(rows["implementation"], sort=False)
    order = pd.DataFrame({"rows": -by_name.size(), "away": by_name.median().abs()})
    return str(order.sort_values(["rows", "away"], kind="stable").index[0])


def unmatched(base: pd.DataFrame, new: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the implementations that only BASE, and those that only NEW, measured at a point that both measured.

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
