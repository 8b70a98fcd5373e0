"""Whether two runs can be compared: their conditions, the machine's state, and other causes of changes."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.analyse.change import Change
from bench.plan.case import CASE_COLUMNS
from bench.store.environment import Environment, differences
from bench.store.saved_run import SavedRun

TOLERATED = {"load_1min": 1.0, "preflight.others_cores": 0.25, "preflight.spread": 0.1}
"""Smaller differences are ignored: a busy process, other work, or an unsteady clock makes larger ones."""

SHARE = 0.05
"""Other numbers, such as clocks, may differ by this share of the larger one: boosting alone moves a clock by less."""

PASSED_OVER = ("available_bytes", "preflight.switches")
"""Facts that differ between any two runs, or that are no state of the machine."""


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
    both = base.table.merge(new.table, on=list(CASE_COLUMNS), suffixes=("_base", "_new"))
    pairs = both[["env_id_base", "env_id_new"]].drop_duplicates().fillna("unknown").to_numpy().tolist()
    return [f"env_id {old} against {young}" for old, young in pairs if old != young]


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
