"""The command `python -m bench duel`: what it refuses, and one duel of each kind from end to end."""

import argparse
import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import _parser as parser
from bench.commands import duel
from bench.harness import options
from bench.plan import names
from bench.plan.case import CONTROL
from bench.store.environment import Environment
from bench.store.table import load
from tests.engine.interpreters import two

Capture = pytest.CaptureFixture[str]
Printed = Callable[..., str]


@pytest.fixture
def tiny(scripted_workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the options of a tiny duel whose workers make their times up, with any implementation called `test:…`.

    It ends when all is answered.
    """
    monkeypatch.setattr(names, "mistake_of", lambda *_: "")
    path = tmp_path / "tiny.toml"
    path.write_text(
        'implementations = ["eager"]\nprocesses = 2\nbudget_s = 0.2\n'
        "[[grid]]\nbatch = 2\nnum_tokens = [5, 7]\nchannels = 12\nnum_heads = 2\n"
    )
    return ["--sweep", str(path), "--run", str(tmp_path / "run"), "--within", "10m"]


PYTHONS = ["--python", sys.executable, "--python", sys.executable]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["eager"], "a duel takes two implementations, or one with two --python, got eager"),
        (["eager", "sdpa", "mha"], "got eager, sdpa, mha"),
        (["sdpa", "sdpa"], "for an A/A: duel sdpa --python X --python X"),
        (["sdpa", "sdap"], "unknown implementation 'sdap'; expected one of eager, as_is"),
        (
            ["sdpa", "eager", *PYTHONS],
            "two environments take one implementation and --python twice, got sdpa, eager and 2",
        ),
        (["sdpa", *PYTHONS[:2]], "got sdpa and 1 of --python"),
        (["sdpa", *PYTHONS[:2], "--python", "/no/such/python"], "/no/such/python must be a Python interpreter"),
        (["eager", "sdpa", "--bound", "0"], "bound = 0.0 must be a share above 0 and below 1, such as 0.02 for 2 %"),
        (["eager", "sdpa", "--num-heads", "5"], "channels = 384 must be divisible by num_heads = 5"),
        (["eager", "sdpa", "--timeout-s", "0"], "timeout_s = 0.0 must be a number above 0"),
    ],
)
def test_a_wrong_request_ends_with_2_and_one_line(
    words: list[str], message: str, tmp_path: Path, refused: Printed
) -> None:
    """What can't be carried out is said before anything is measured, with what could have come."""
    assert message in refused("duel", *words, "--run", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("line", ["--channels 192", "--mask causal --num-tokens 5,7", "--sweep article --num-heads 1"])
def test_the_points_are_those_of_pytest_bench(line: str) -> None:
    """What the options leave out is the same shape, and it is a shape of 384 channels from 384 values a token."""
    bench = argparse.ArgumentParser()
    options.add(bench.add_argument)
    asked = duel._sweep(parser(["duel"]).parse_args(["duel", "eager", "sdpa", *line.split()]), ["eager", "sdpa"])
    assert asked.points == options.sweep(bench.parse_args(line.split())).points
    (alone,) = duel._sweep(parser(["duel"]).parse_args(["duel", "eager", "sdpa"]), ["eager", "sdpa"]).points
    assert (alone.num_tokens, alone.token_len, alone.channels, alone.num_heads, alone.batch) == (197, 384, 384, 6, 8)


@pytest.mark.parametrize("version", ["none", "1.13.1+cu117", "2.9.0"])
def test_an_interpreter_needs_a_new_torch(version: str, tmp_path: Path, refused: Printed) -> None:
    """The one line has the interpreter, the oldest torch that the project allows, and what it has."""
    python, options = tmp_path / "python", "-S"
    if version != "none":
        (tmp_path / f"torch-{version}.dist-info").mkdir()
        (tmp_path / f"torch-{version}.dist-info" / "METADATA").write_text(f"Name: torch\nVersion: {version}\n")
        options = ""
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec "{sys.executable}" {options} "$@"\n')
    python.chmod(0o755)
    groups = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["dependency-groups"]
    (least,) = (name.removeprefix("torch>=") for name in groups["bench"] if str(name).startswith("torch>="))
    line = refused("duel", "sdpa", *PYTHONS[:2], "--python", python, "--run", tmp_path / "run")
    assert line.endswith(f"--python {python} must have torch {least} or newer, and it has {version}")


@pytest.mark.parametrize(("text", "reason"), [("nothing", "Exec format error"), ("#!/bin/sh\nno_such", "not found")])
def test_what_is_no_interpreter_is_refused(text: str, reason: str, tmp_path: Path, refused: Printed) -> None:
    """The one line has the system's reason, or the last line that the program wrote."""
    program = tmp_path / "python"
    program.write_text(text)
    program.chmod(0o755)
    assert reason in refused("duel", "sdpa", *PYTHONS[:2], "--python", program, "--run", tmp_path / "run")


def test_two_implementations_from_end_to_end(tiny: list[str], tmp_path: Path, printed: Printed) -> None:
    """The sides are named, each point has its line and its row, and the folder is that of a race with a control."""
    output = printed("duel", "sdpa", "test:half", *tiny)
    assert "A is sdpa, B is test:half, both with torch 2.0" in output
    assert {tokens: output.count(f"N={tokens}") for tokens in (5, 7)} == {5: 2, 7: 2}
    assert output.count("fastest: test:half") == 4
    table = load(tmp_path / "run")
    assert table["implementation"].tolist() == ["sdpa", "test:half", CONTROL] * 2
    assert table.loc[table["implementation"] == "test:half", "speedup"].tolist() == pytest.approx([2, 2], rel=0.01)
    effort = json.loads((tmp_path / "run" / "plan.json").read_text())["effort"]
    assert (effort["race"], effort["within_s"], effort["processes"]) == (True, 600, 2)
    assert set(table["processes"]) == {2}
    again = printed("duel", "sdpa", "test:half", *tiny, "--bound", "3%")
    assert again.count("fastest: test:half") == 4
    assert set(load(tmp_path / "run")["processes"]) == {2}


def test_two_environments_from_end_to_end(tiny: list[str], tmp_path: Path, printed: Printed) -> None:
    """Both torches are named, what differs is said, and each side has a folder."""
    a, b = two(tmp_path, "1.1e-3")
    output = printed("duel", "sdpa", "--python", a, "--python", b, *tiny, "--num-tokens", "5")
    for words in ("A is sdpa with torch 2.0, Python 3.", "differ in: torch: '2.0' against '2.1'\n", "0.91x"):
        assert words in output
    assert [len(load(tmp_path / "run" / side)) for side in "ab"] == [1, 1]


def test_a_side_that_cannot_be_measured_ends_with_1(tiny: list[str], printed: Printed) -> None:
    """The rows are there, and say why."""
    assert "N=5: test:raises error: no" in printed("duel", "sdpa", "test:raises", *tiny, status=1)


def sides(a: dict[str, dict[str, str]], b: dict[str, dict[str, str]], torch: str = "2.0") -> list[str]:
    """Return what is said of two environments that import these modules, the second with this torch."""
    identities = [{"torch": version, "python": "3.11"} for version in ("2.0", torch)]
    one, other = (Environment(each, {}, {"modules": of}) for each, of in zip(identities, (a, b), strict=True))
    return [*duel._environments("mykernel:attend", one, other)]


def module(file: str, digest: str, commit: str = "") -> dict[str, str]:
    """Return a module of the user's own as an environment has it."""
    return {"file": file, "commit": commit, "digest": digest}


OLD, NEW = module("../old/mylib/__init__.py", "1", "abc"), module("../new/mylib/__init__.py", "2", "abc with changes")
KERNEL = module("mykernel.py", "3")
INSTALLED = module("../old/site-packages/timm/__init__.py", "4")


def test_two_versions_of_a_users_code_are_a_difference() -> None:
    """Each side names file and commit of what its names bring in, not that of installed packages; the rest differs."""
    lines = sides({"mykernel": KERNEL, "mylib": OLD, "timm": INSTALLED}, {"mykernel": KERNEL, "mylib": NEW})
    assert "  mykernel from mykernel.py, not in git" in lines
    assert "  mylib from ../old/mylib/__init__.py, commit abc" in lines
    assert "  mylib from ../new/mylib/__init__.py, commit abc with changes" in lines
    assert lines[-1] == (
        f"A and B differ in: mylib: {OLD['file']} against {NEW['file']}; timm: {INSTALLED['file']} against not imported"
    )


def test_two_sides_with_the_same_code_are_an_a_a_that_says_where_it_comes_from() -> None:
    """A copy of the code elsewhere is the same code. If torch differs, nothing is strange about one file."""
    *_, line, where = sides({"mykernel": KERNEL}, {"mykernel": KERNEL})
    assert line.endswith("so this is an A/A")
    assert "mykernel from this folder" in where
    assert sides({"mylib": OLD}, {"mylib": {**NEW, "digest": "1"}})[-1].endswith("so this is an A/A")
    assert sides({"mykernel": KERNEL}, {"mykernel": KERNEL}, torch="2.1")[-1].endswith("torch: '2.0' against '2.1'")
