"""What a self-check found is read where it can be, and keeps nobody from anything where it can't."""

from typing import Any

import pytest

from bench.store.detectable import Detectable, detectable
from bench.store.environment import Environment

FOUND: dict[str, Any] = {"detectable": {"1": 0.012, "4": 0.05}, "false_alarms": 0, "rows": 54, "processes": 10}


def test_a_self_check_is_read() -> None:
    """The detectable change by threads, with the processes and what was tried."""
    assert detectable(of(FOUND)) == Detectable({1: 0.012, 4: 0.05}, processes=10, false_alarms=0, rows=54)


def test_what_was_tried_may_be_missing() -> None:
    """The detectable change stands without it."""
    assert detectable(of({"detectable": {"1": 0.012}, "processes": 5})) == Detectable({1: 0.012}, 5, 0, 0)


def test_threads_without_an_answer_are_left_out() -> None:
    """A count of threads at which nothing could be detected has no change to quote."""
    found = detectable(of({**FOUND, "detectable": {"1": 0.012, "2": None, "3": float("nan"), "4": 0}}))
    assert found
    assert found.share == {1: 0.012}


@pytest.mark.parametrize(
    "found",
    [
        None,
        "all is well",
        [],
        {},
        {**FOUND, "detectable": 0.012},
        {**FOUND, "detectable": {}},
        {**FOUND, "detectable": {"one": 0.012}},
        {**FOUND, "detectable": {"1": "a lot"}},
        {**FOUND, "processes": None},
        {"detectable": {"1": 0.012}},
    ],
)
def test_what_cannot_be_understood_is_none(found: Any) -> None:
    """Another suite's self-check, or one that was cut short, is passed over."""
    assert detectable(of(found)) is None


def test_without_an_environment_or_a_self_check_there_is_none() -> None:
    """Most runs have none."""
    assert detectable(None) is None
    assert detectable(Environment({}, {}, {})) is None


def of(found: Any) -> Environment:
    """Return an environment with this as its self-check."""
    return Environment({}, {"selfcheck": found}, {})
