"""Whether two runs can be compared: their machines and software, and the speed of the machine."""

import math
import statistics
from collections.abc import Sequence

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.change import Change
from bench.plan.case import CASE_COLUMNS
from bench.store.environment import differences

STEADY = 0.15
"""If raw times changed by more than this share, the machine ran at another speed: some 12 % are everyday drift."""


def unlike_conditions(base: AnalysedRun, new: AnalysedRun) -> list[str]:
    """Return how the machines or the software of two runs differ.

    Their environments say it; if these are unknown or equal, the env_ids of shared cases do: a run that moved between
    machines has several.
    Raises WrongRequest for a path that holds no results.
    """
    before, after = base.environment, new.environment
    if before and after and (unlike := differences(before, after)):
        return unlike
    both = base.table.merge(new.table, on=list(CASE_COLUMNS), suffixes=("_base", "_new"))
    pairs = both[["env_id_base", "env_id_new"]].drop_duplicates().fillna("unknown").to_numpy().tolist()
    return [f"env_id {old} against {young}" for old, young in pairs if old != young]


def raw_change(changes: Sequence[Change]) -> float | None:
    """Return how many times as long the median row takes in NEW, None if that is not known."""
    times = [(change.new.get("latency_s"), change.base.get("latency_s")) for change in changes]
    return statistics.median(known) if (known := [new / base for new, base in times if new and base]) else None


def is_steady(factor: float) -> bool:
    """Return whether times that changed by a factor are everyday drift, and not another speed of the machine.

    Ratios between dissimilar kernels shift with the machine's speed: when eager took 1.4 to 1.5 times as long, manual
    seemed 6 to 12 % slower beside it, though its code had not changed.
    """
    return abs(math.log(factor)) <= math.log1p(STEADY)
