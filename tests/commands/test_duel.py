"""The command `python -m bench duel`: what it refuses, and one duel of each kind from end to end."""

import json
import sys
from pathlib import Path

import pytest

from bench.cli import main
from bench.commands.duel import TARGET
from bench.engine import pool, preflight
from bench.engine.preflight import Preflight
from bench.store.table import load
from tests.engine.interpreters import two

TINY = """
implementations = ["eager"]
processes = 2
budget_s = 0.2
[defaults]
batch = 2
[[grid]]
num_tokens = [5, 7]
channels = 12
num_heads = 2
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the options of a tiny duel whose workers make their times up."""
    monkeypatch.setattr(pool, "MODULE", "tests.engine.scripted_server")
    monkeypatch.setattr(preflight, "watch", lambda: Preflight(0.0, 0, 0.0))
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return ["--sweep", str(path), "--run", str(tmp_path / "run"), "--looks", "2,4"]


PYTHONS = ["--python", sys.executable, "--python", sys.executable]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["eager"], "a duel takes two implementations, or one with two --python, got eager"),
        (["eager", "sdpa", "mha"], "got eager, sdpa, mha"),
        (["sdpa", "sdpa"], "for an A/A: duel sdpa --python X --python X"),
        (["sdpa", "sdap"], "unknown implementation 'sdap'; expected one of eager, manual"),
        (
            ["sdpa", "eager", *PYTHONS],
            "two environments take one implementation and --python twice, got sdpa, eager and 2",
        ),
        (["sdpa", *PYTHONS[:2]], "got sdpa and 1 of --python"),
        (["sdpa", *PYTHONS[:2], "--python", "/no/such/python"], "/no/such/python must be a Python interpreter"),
        (["eager", "sdpa", "--looks", "five"], "--looks five must be whole numbers separated by commas"),
        (["eager", "sdpa", "--looks", "5,5"], "looks 5,5 must be whole numbers of at least 2"),
        (["eager", "sdpa", "--sweep", "articel"], "unknown sweep 'articel'; expected one of"),
        (["eager", "sdpa", "--num-heads", "5"], "channels = 64 must be divisible by num_heads = 5"),
        (["eager", "sdpa", "--budget-s", "0"], "budget_s = 0.0 must be a number above 0"),
    ],
)
def test_a_wrong_request_ends_with_2_and_one_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What can't be carried out is said before anything is measured, with what could have come."""
    assert main(["duel", *words, "--run", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert message in said[0]
    assert not (tmp_path / "run").exists()


def test_two_implementations_from_end_to_end(
    tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sides are named, what is plain is decided at the first look, and the folder is an ordinary run's."""
    assert main(["duel", "sdpa", "test:half", *tiny]) == 0
    said = capsys.readouterr().out
    assert "A is sdpa, B is test:half, both with torch 2.0" in said
    assert [line.split("|")[1].strip() for line in said.splitlines() if "decided" in line] == ["2 of 2 decided"]
    assert said.count("B faster") == 2
    table = load(tmp_path / "run")
    assert table["implementation"].tolist() == ["sdpa", "test:half"] * 2
    assert set(table["processes"]) == {2}
    effort = json.loads((tmp_path / "run" / "plan.json").read_text())["effort"]
    assert (effort["processes"], effort["budget_s"], effort["target"]) == (4, 0.4, TARGET)


def test_two_environments_from_end_to_end(tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both torches are named, what differs is said, and each side has a folder."""
    a, b = two(tmp_path, "1.1e-3")
    words = ["duel", "sdpa", "--python", a, "--python", b, *tiny, "--num-tokens", "5", "--budget-s", "0.2"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "A is sdpa with torch 2.0, Python 3." in said
    assert "A and B differ in: torch: '2.0' against '2.1'" in said
    assert "B slower" in said
    assert [len(load(tmp_path / "run" / side)) for side in "ab"] == [1, 1]


def test_a_side_that_cannot_be_measured_ends_with_1(tiny: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The rows are there, and say why."""
    assert main(["duel", "sdpa", "test:raises", *tiny]) == 1
    assert "N=5: B error: no" in capsys.readouterr().out


def test_help_names_the_options_of_a_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    """Points are chosen as for a sweep."""
    with pytest.raises(SystemExit):
        main(["duel", "--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in ("--sweep", "--num-tokens", "--dtype", "--threads", "--budget-s", "--python"))
