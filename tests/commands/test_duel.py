"""The command `python -m bench duel`: refusals, and one duel of each kind from end to end."""

import json
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.cli import main
from bench.commands import duel
from bench.machine import quiet
from bench.machine.quiet import Preflight
from bench.plan import names
from bench.plan.case import AFTER, BEFORE, CONTROL
from bench.plan.sides import SAME
from bench.plan.verdicts import DIFFERENT, FASTER
from bench.store.table import load
from tests.engine import threads
from tests.engine.interpreters import two
from tests.engine.test_checkout import git

Capture = pytest.CaptureFixture[str]
Printed = Callable[..., str]


@pytest.fixture
def tiny(scripted_workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the options of a tiny duel whose workers make their times up, with any implementation called `test:…`.

    It ends when all is answered.
    """
    monkeypatch.setattr(names, "mistake_of", lambda *_: "")
    monkeypatch.setattr(duel, "BUDGET_S", 0.2)
    path = tmp_path / "tiny.toml"
    path.write_text("[[grid]]\nbatch = 2\nnum_tokens = [5, 7]\nchannels = 12\nnum_heads = 2\n")
    return ["--sweep", str(path), "--run", str(tmp_path / "run"), "--within", "10m"]


PYTHONS = ["--python", sys.executable, "--python", sys.executable]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("nothing", "Exec format error"),
        ("#!/bin/sh\nno_such", "not found"),
        (f'#!/bin/sh\nexec {sys.executable} -S "$@"', "must have torch 2.11 or newer, but it has none"),
        ("#!/bin/sh\necho 2.9.0", "must have torch 2.11 or newer, but it has 2.9.0"),
    ],
)
def test_an_interpreter_needs_a_new_torch(program: str, reason: str, tmp_path: Path, refused: Printed) -> None:
    """The error line has the system's reason, the last line of the program, or its version of torch."""
    python = tmp_path / "python"
    python.write_text(program)
    python.chmod(0o755)
    assert reason in refused("duel", "sdpa", *PYTHONS[:2], "--python", python, "--run", tmp_path / "run")


def test_the_oldest_torch_is_the_projects() -> None:
    """It is what pyproject.toml asks for."""
    groups = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["dependency-groups"]
    assert f"torch>={'.'.join(map(str, duel.LEAST_TORCH))}" in groups["bench"]


def test_two_implementations_from_end_to_end(tiny: list[str], tmp_path: Path, printed: Printed) -> None:
    """Each point has its verdict and its rows, and the folder holds a race with a control that can be resumed."""
    output = printed("duel", "sdpa", "test:half", *tiny, "--format", "json")
    content = json.loads(output)
    assert (content["verdict"], content["before"], content["after"]) == (FASTER, "sdpa", "test:half")
    assert [each["point"]["num_tokens"] for each in content["points"]] == [5, 7]
    assert [each["speedup"] for each in content["points"]] == pytest.approx([2, 2], rel=0.01)
    assert not content["sides"]
    table = load(tmp_path / "run")
    assert table["implementation"].tolist() == ["sdpa", "test:half", CONTROL] * 2
    effort = vars(AnalysedRun(tmp_path / "run").effort)
    assert (effort["race"], effort["within_s"], effort["processes"], effort["bound"]) == (True, 600, 2, 0.01)
    page, file = tmp_path / "page.html", tmp_path / "comment.md"
    line = printed("duel", "sdpa", "test:half", *tiny, "--bound", "3%", "--format", "markdown", "--to", file)
    assert file.read_text().startswith("**test:half is ")
    assert str(file) in line
    again = printed("duel", "sdpa", "test:half", *tiny, "--bound", "3%", "--report", page)
    (answer,) = [line for line in again.splitlines() if line.startswith("test:half is ")]
    assert all(text in page.read_text() for text in (answer, "the speed-up compares within each round"))
    assert load(tmp_path / "run").equals(table)


def test_two_environments_from_end_to_end(
    tiny: list[str], tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both torches are named, and the rows are those before and after; a larger slowdown is not allowed.

    The facts about the sides are there when the folder is read again.
    """
    threads.use_processes(monkeypatch)
    a, b = two(tmp_path, "1.1e-3")
    words = ["duel", "sdpa", "--python", a, "--python", b, *tiny, "--num-tokens", "5"]
    output = printed(*words, "--format", "markdown", "--allow", "5%", status=1)
    assert all(torch in output for torch in ("torch 2.0", "torch 2.1"))
    (ratio,) = re.findall(r"([\d.]+)x", output.splitlines()[0])
    assert float(ratio) == pytest.approx(1 / 1.1, abs=0.03)
    assert load(tmp_path / "run")["implementation"].tolist() == [BEFORE, AFTER, CONTROL]
    content = json.loads(printed(*words, "--allow", "20%", "--format", "json"))
    assert content["weights"] == SAME
    assert [side["torch"] for side in content["sides"].values()] == ["2.0", "2.1"]


def test_a_side_that_cannot_be_measured_ends_with_3(tiny: list[str], printed: Printed) -> None:
    """The answer names it, and says why; `git bisect` can tell it from a slower one."""
    output = printed("duel", "sdpa", "test:raises", *tiny, status=3)
    (answer,) = [line for line in output.splitlines() if line.startswith("test:raises is ")]
    assert answer.endswith(": no")


LAYER = """
import torch
from torch import nn
from torch.nn import functional as F

class Attention(nn.Module):
    def __init__(self, channels, num_heads):
        super().__init__()
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)
        self.num_heads = num_heads

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return self.out(y)
"""

WRONG = LAYER.replace("        return", "        y[:, 3:] = y[:, 3:] * 1.5\n        return")


@pytest.mark.slow
def test_a_branch_of_a_repository_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """A branch that is wrong from a token on is different: both sides have the same weights and their own revision.

    The user stands in the repository.
    """
    repository = tmp_path / "repository"
    package = repository / "duel_mylib"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    git(repository, "init", "--quiet")
    for branch, text in {"main": LAYER, "wrong": WRONG}.items():
        git(repository, "checkout", "--quiet", "-b", branch)
        (package / "attention.py").write_text(text)
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "--message", branch)

    monkeypatch.setattr(quiet, "watch", lambda: Preflight(0.0, 0, 0.0))
    monkeypatch.chdir(repository)
    monkeypatch.syspath_prepend(repository)  # as `python -m` does
    monkeypatch.setattr(duel, "PROCESSES", 1)
    monkeypatch.setattr(duel, "BUDGET_S", 0.1)
    sides = ["--checkout", ".@main", "--checkout", f"{repository}@wrong"]
    words = ["duel", "--layer", "duel_mylib.attention:Attention", *sides, "--run", str(tmp_path / "run")]
    words += ["--batch", "2", "--num-tokens", "7", "--channels", "16", "--num-heads", "2", "--within", "1s"]
    assert main([*words, "--format", "json"]) == 1, capsys.readouterr()
    content = json.loads(capsys.readouterr().out)
    (each,) = content["points"]
    assert (content["weights"], each["verdict"]) == (SAME, DIFFERENT)
    assert "tokens 3 to 6" in each["after"]["detail"]
