"""Checks that two runs can be compared: machines, software, and the machine's speed."""

import math
import statistics
from collections.abc import Sequence

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.change import Change
from bench.plan.case import CASE_COLUMNS
from bench.store.environment import differences

STEADY = 0.15
"""If raw times changed by more than this share, the machine ran at another speed; some 12 % is everyday drift."""


def unlike_conditions(base: AnalysedRun, new: AnalysedRun) -> list[str]:
    """Return the differences between the machines or the software of two runs.

    They come from the environments. If these are unknown or equal, the env_ids of shared cases are compared: a run
    that moved between machines has several.
    Raises WrongRequest for a path that holds no results.
    """
    before, after = base.environment, new.environment
    if before and after and (unlike := differences(before, after)):
        return unlike
    both = base.table.merge(new.table, on=list(CASE_COLUMNS), suffixes=("_base", "_new"))
    pairs = both[["env_id_base", "env_id_new"]].drop_duplicates().fillna("unknown").to_numpy().tolist()
    return [f"env_id {old} against {young}" for old, young in pairs if old != young]


def raw_change(changes: Sequence[Change]) -> float | None:
    """Return the median over rows of the time in NEW over the time in BASE, None if unknown."""
    times = [(change.new.get("latency_s"), change.base.get("latency_s")) for change in changes]
    return statistics.median(known) if (known := [new / base for new, base in times if new and base]) else None


def is_steady(factor: float) -> bool:
    """Return whether a change of times by this factor is everyday drift rather than another speed of the machine.

    Ratios between dissimilar kernels shift with the machine's speed: when eager took 1.4 to 1.5 times as long, the
    unchanged manual was 6 to 12 % slower relative to it.
    """
    return abs(math.log(factor)) <= math.log1p(STEADY)
