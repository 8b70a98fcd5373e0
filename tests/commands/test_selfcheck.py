"""The command `python -m bench selfcheck`, with workers that make their times up."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import main
from bench.engine import trials as engine
from bench.machine import facts as store
from bench.store.table import load


@pytest.fixture
def remembered(scripted_workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the result is remembered; rounds end soon."""
    monkeypatch.setattr(engine, "SELFCHECK_ROUNDS_S", 0.1)
    monkeypatch.setattr(store, "SELFCHECK_PATH", tmp_path / "selfcheck.json")
    return tmp_path / "selfcheck.json"


def check(folder: Path) -> int:
    """Return the exit status of a self-check with one thread, in the fewest processes."""
    return main(["selfcheck", "--threads", "1", "--limit-s", "0", "--run", str(folder)])


def test_it_says_what_can_be_claimed_and_remembers_it(
    remembered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result is printed, kept by the environment, and carried by the next run."""
    assert check(tmp_path / "run") == 0
    said = capsys.readouterr().out
    assert "1 thread, 10 processes: a change of" in said
    assert "Time allowed fewer than 10 processes" in said
    assert "It took " in said
    (env_id,) = set(load(tmp_path / "run")["env_id"])
    found = json.loads(remembered.read_text())[env_id]
    assert set(found) == {"detectable", "between", "processes"}
    assert set(found["detectable"]) == {"1"}
    check(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "environment.json").read_text())["state"]["selfcheck"] == found


def test_a_copy_that_differs_from_its_original_ends_with_1(
    remembered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine on which identical code takes half the time supports no claim."""
    monkeypatch.setattr(engine, "TWIN", "test:half")
    assert check(tmp_path / "run") == 1
    assert "no claim holds here" in capsys.readouterr().out


def test_a_copy_that_cannot_be_measured_ends_with_1(
    remembered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then there is nothing to say of the machine, and nothing to remember."""
    monkeypatch.setattr(engine, "TWIN", "test:raises")
    assert check(tmp_path / "run") == 1
    assert "could not be measured" in capsys.readouterr().out
    assert not remembered.exists()


@pytest.mark.parametrize(("threads", "message"), [("all", "--threads all must be"), ("0", "threads = 0 must be")])
def test_threads_that_are_none_end_with_2(threads: str, message: str, refused: Callable[..., str]) -> None:
    """The line says what was expected."""
    assert message in refused("selfcheck", "--threads", threads)
