"""What self-checks found is remembered for the environment in which they ran."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.machine import facts, selfcheck
from bench.machine.selfcheck import Detectable, between, detectable
from bench.store.environment import Environment

FOUND: dict[str, Any] = {"detectable": {"1": 0.019}, "processes": 10}
TORCH_FACTS: dict[str, Any] = {"torch": "2.13.0", "gpus": {}}


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep what is remembered in a file of its own."""
    path = tmp_path / "results" / "selfcheck.json"
    monkeypatch.setattr(selfcheck, "PATH", path)
    return path


def test_what_was_found_is_recalled_in_the_same_environment_alone() -> None:
    """Each environment has its own finding, the latest."""
    assert selfcheck.recall("one") is None
    selfcheck.remember("one", {**FOUND, "processes": 5})
    selfcheck.remember("two", FOUND)
    selfcheck.remember("one", FOUND)
    assert selfcheck.recall("one") == selfcheck.recall("two") == FOUND
    assert selfcheck.recall("three") is None


@pytest.mark.parametrize("content", ["", "[]", "no JSON", '{"one": 1}'])
def test_a_file_that_is_none_of_ours_is_as_good_as_none(content: str, path: Path) -> None:
    """It is replaced by the next self-check, and stops no run."""
    path.parent.mkdir()
    path.write_text(content)
    assert selfcheck.recall("one") is None
    selfcheck.remember("one", FOUND)
    assert json.loads(path.read_text())["one"] == FOUND


def test_a_run_carries_it_in_its_state() -> None:
    """It is there once a self-check ran in this environment, and plays no part in the identity."""
    before = facts.observe(TORCH_FACTS, {}, {})
    assert "selfcheck" not in before.state
    selfcheck.remember(before.env_id, FOUND)
    after = facts.observe(TORCH_FACTS, {}, {})
    assert after.state["selfcheck"] == FOUND
    assert after.env_id == before.env_id
    assert "selfcheck" not in facts.observe({**TORCH_FACTS, "torch": "2.14.0"}, {}, {}).state


SEVERAL: dict[str, Any] = {"detectable": {"1": 0.012, "4": 0.05}, "processes": 10}


def test_a_self_check_is_read() -> None:
    """The detectable change by threads that have one, with the processes; what an older suite added is passed over."""
    assert detectable(of(SEVERAL)) == Detectable({1: 0.012, 4: 0.05}, processes=10)
    assert detectable(of({**SEVERAL, "false_alarms": 0, "rows": 54})) == detectable(of(SEVERAL))
    some = detectable(of({**SEVERAL, "detectable": {"1": 0.012, "2": None, "3": float("nan"), "4": 0}}))
    assert some
    assert some.share == {1: 0.012}


@pytest.mark.parametrize(
    "found",
    [
        None,
        "all is well",
        [],
        {},
        {**SEVERAL, "detectable": 0.012},
        {**SEVERAL, "detectable": {}},
        {**SEVERAL, "detectable": {"one": 0.012}},
        {**SEVERAL, "detectable": {"1": "a lot"}},
        {**SEVERAL, "processes": None},
        {"detectable": {"1": 0.012}},
    ],
)
def test_what_cannot_be_understood_is_none(found: Any) -> None:
    """Another suite's self-check, or one that was cut short, is passed over; most runs have none."""
    assert detectable(of(found)) is None
    assert detectable(None) is None
    assert detectable(Environment({}, {}, {})) is None


def of(found: Any) -> Environment:
    """Return an environment with this as its self-check."""
    return Environment({}, {"selfcheck": found}, {})


def test_what_runs_differ_by_is_read() -> None:
    """By the number of threads, with its degrees of freedom; an older self-check lacks it."""
    assert between(of({**SEVERAL, "between": {"1": [0.01, 4.2], "2": [0, 9]}})) == {1: (0.01, 4.2), 2: (0.0, 9.0)}
    assert between(of(SEVERAL)) == between(None) == {}


@pytest.mark.parametrize(
    "wrong", [3, [], {"one": [0.1, 2]}, {"1": 0.1}, {"1": ["a", 2]}, {"1": [float("nan"), 2]}, {"1": [-1, 2]}]
)
def test_what_can_not_be_read_is_not_known(wrong: Any) -> None:
    """Runs can be compared without it."""
    assert between(of({**SEVERAL, "between": wrong})) == {}
