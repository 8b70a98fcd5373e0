"""Whether two runs were measured under the same conditions, and how the state of the machine differed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.plan.case import CASE_COLUMNS
from bench.store.environment import Environment, differences
from bench.store.saved_run import SavedRun

TOLERATED = {"load_1min": 1.0, "preflight.others_cores": 0.25, "preflight.spread": 0.1}
"""Smaller differences are ignored: a busy process, other work, or an unsteady clock makes larger ones."""

SHARE = 0.05
"""Other numbers, such as clocks, may differ by this share of the larger one: boosting alone moves a clock by less."""

PASSED_OVER = ("available_bytes", "preflight.switches", "selfcheck")
"""Facts that differ between any two runs, or that are no state of the machine."""


@dataclass(frozen=True)
class StateDifference:
    """A fact of the machine's state that two runs recorded differently; dots join the names of nested facts."""

    name: str
    base: Any
    new: Any


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


def state_differences(base: Environment, new: Environment) -> list[StateDifference]:
    """Return the notable differences of state before two runs, of the facts that both recorded."""
    before, after = dict(_flat(base.state)), dict(_flat(new.state))
    return [
        StateDifference(name, before[name], after[name])
        for name in before
        if name in after and _differ(name, before[name], after[name])
    ]


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
    if not (_is_number(base) and _is_number(new)):
        return bool(base != new)
    return bool(abs(new - base) > TOLERATED.get(name, SHARE * max(abs(base), abs(new))))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
