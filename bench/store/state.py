"""What a machine was doing while it measured: differences between two runs warn, they refuse nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.store.environment import Environment

TOLERATED = {"load_1min": 1.0, "preflight.others_cores": 0.25, "preflight.spread": 0.1}
"""Differences up to these are not told: less than a busy process, than a neighbour, and than an unsteady clock."""


@dataclass(frozen=True)
class StateDifference:
    """A fact of the machine's state that two runs recorded differently; dots join the names of nested facts."""

    name: str
    base: Any
    new: Any


PASSED_OVER = ("available_bytes", "preflight.switches", "selfcheck")
"""What differs between any two runs, and what is no state of theirs."""

SHARE = 0.05
"""Other numbers, such as clocks, may differ by this share of the larger one: boosting alone moves a clock by less."""


def state_differences(base: Environment, new: Environment) -> list[StateDifference]:
    """Return what was notably different before two runs; what only one of them recorded is no difference."""
    before, after = dict(_flat(base.state)), dict(_flat(new.state))
    return [
        StateDifference(name, before[name], after[name])
        for name in before
        if name in after and _apart(name, before[name], after[name])
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


def _apart(name: str, base: Any, new: Any) -> bool:
    if not (_is_number(base) and _is_number(new)):
        return bool(base != new)
    return bool(abs(new - base) > TOLERATED.get(name, SHARE * max(abs(base), abs(new))))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
