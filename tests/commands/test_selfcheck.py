"""The command `python -m bench selfcheck`, with workers that make their times up."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.engine import trials as engine
from bench.machine import facts as store
from bench.store.table import load


@pytest.fixture
def remembered(scripted_workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the result is remembered; rounds end soon."""
    monkeypatch.setattr(engine, "SELFCHECK_ROUNDS_S", 0.1)
    monkeypatch.setattr(store, "SELFCHECK_PATH", tmp_path / "selfcheck.json")
    return tmp_path / "selfcheck.json"


CHECK = ("selfcheck", "--threads", "1", "--limit-s", "0", "--run")
"""A self-check with one thread, in the fewest processes."""

Printed = Callable[..., str]


def test_it_says_what_can_be_claimed_and_remembers_it(remembered: Path, tmp_path: Path, printed: Printed) -> None:
    """The result is printed, kept by the environment, and carried by the next run."""
    said = printed(*CHECK, tmp_path / "run")
    assert "1 thread, 10 processes: a change of" in said
    assert "Time allowed fewer than 10 processes" in said
    assert "It took " in said
    (env_id,) = set(load(tmp_path / "run")["env_id"])
    state = json.loads(remembered.read_text())[env_id]
    assert set(state) == {"detectable", "between", "processes"}
    assert set(state["detectable"]) == {"1"}
    printed(*CHECK, tmp_path / "again")
    assert json.loads((tmp_path / "again" / "environment.json").read_text())["state"]["selfcheck"] == state


@pytest.mark.parametrize(
    ("twin", "message"), [("test:half", "no claim holds here"), ("test:raises", "could not be measured")]
)
def test_a_copy_that_is_not_like_its_original_ends_with_1(
    twin: str, message: str, remembered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    """A machine on which identical code takes half the time supports no claim.

    If the copy can't be measured, there is nothing to say of the machine, and nothing to remember.
    """
    monkeypatch.setattr(engine, "TWIN", twin)
    assert message in printed(*CHECK, tmp_path / "run", status=1)
    assert remembered.exists() == (twin == "test:half")


@pytest.mark.parametrize(("threads", "message"), [("all", "--threads all must be"), ("0", "threads = 0 must be")])
def test_threads_that_are_none_end_with_2(threads: str, message: str, refused: Printed) -> None:
    """The line says what was expected."""
    assert message in refused("selfcheck", "--threads", threads)
