"""What self-checks found is remembered for the environment in which they ran."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.store import machine, selfcheck

FOUND: dict[str, Any] = {"detectable": {"1": 0.019}, "false_alarms": 0, "rows": 4000, "processes": 10}
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
    selfcheck.remember("one", {**FOUND, "rows": 1})
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
    before = machine.observe(TORCH_FACTS, {}, {})
    assert "selfcheck" not in before.state
    selfcheck.remember(before.env_id, FOUND)
    after = machine.observe(TORCH_FACTS, {}, {})
    assert after.state["selfcheck"] == FOUND
    assert after.env_id == before.env_id
    assert "selfcheck" not in machine.observe({**TORCH_FACTS, "torch": "2.14.0"}, {}, {}).state
