"""What a machine was doing warns where it differs, and what always differs says nothing."""

from typing import Any

import pytest

from bench.store.environment import Environment
from bench.store.state import StateDifference, state_differences

QUIET: dict[str, Any] = {
    "load_1min": 0.4,
    "available_bytes": 8 << 30,
    "preflight": {"others_cores": 0.02, "switches": 3, "spread": 0.04},
    "clock_hz": 1.98e9,
    "throttle": [],
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"load_1min": 3.9}, ("load_1min", 0.4, 3.9)),
        ({"preflight": {**QUIET["preflight"], "others_cores": 1.0}}, ("preflight.others_cores", 0.02, 1.0)),
        ({"preflight": {**QUIET["preflight"], "spread": 0.31}}, ("preflight.spread", 0.04, 0.31)),
        ({"clock_hz": 1.41e9}, ("clock_hz", 1.98e9, 1.41e9)),
        ({"throttle": ["power"]}, ("throttle", [], ["power"])),
    ],
)
def test_a_notable_difference_is_told(change: dict[str, Any], told: tuple[str, Any, Any]) -> None:
    """Load, neighbours, an unsteady clock, another clock: each with both values."""
    assert state_differences(at(), at(**change)) == [StateDifference(*told)]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"load_1min": 1.1},
        {"available_bytes": 1 << 30},
        {"preflight": {"others_cores": 0.2, "switches": 900, "spread": 0.09}},
        {"clock_hz": 1.95e9},
        {"selfcheck": {"detectable": {"1": 0.01}}},
        {"load_1min": None, "something_new": 7},
    ],
)
def test_what_differs_between_any_two_runs_is_not_told(change: dict[str, Any]) -> None:
    """Small differences, memory that is free, switches, and facts that only one side recorded."""
    changed = {name: value for name, value in {**QUIET, **change}.items() if value is not None}
    assert state_differences(at(), Environment({}, changed, {})) == []


def test_differences_stand_in_the_order_of_base() -> None:
    """Several are told one by one."""
    changed = at(load_1min=9.0, clock_hz=1e9)
    assert [each.name for each in state_differences(at(), changed)] == ["load_1min", "clock_hz"]


def test_runs_without_any_state_differ_in_nothing() -> None:
    """An environment that says nothing warns of nothing."""
    assert state_differences(Environment({}, {}, {}), at()) == []


def at(**changes: Any) -> Environment:
    """Return an environment in a state, some of it changed."""
    return Environment({}, {**QUIET, **changes}, {})
