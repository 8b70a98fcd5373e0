"""The command line: its commands, their output, and exit statuses."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import main
from bench.commands import NAMES
from bench.machine import signals
from bench.plan.case import Case
from bench.plan.errors import CannotWrite, NotComparable, WrongRequest
from bench.plan.statuses import BROKEN_PIPE, INTERRUPTED, UNMEASURED
from bench.store import profile as store
from tests.make import runs
from tests.make.points import point
from tests.make.profiles import graph

ROOT = Path(__file__).parents[1]

Printed = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run of two points."""
    return runs.of(tmp_path / "run", [Case(point(num_tokens=n), name) for n in (5, 7) for name in ("eager", "sdpa")])


# commands


def test_help_imports_nothing_that_is_slow() -> None:
    """Neither libraries of numbers and charts nor torch, for the help of each command and of all."""
    program = (
        "import contextlib, sys; from bench import cli\n"
        "for words in [[], *([name] for name in sys.argv[1:])]:\n"
        "    with contextlib.suppress(SystemExit): cli.main([*words, '--help'])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *NAMES], capture_output=True, text=True, check=True)
    slow = {"matplotlib", "numpy", "pandas", "scipy", "torch"}
    assert not slow & {*done.stderr.split()}
    assert {"argparse", "bench.cli"} <= {*done.stderr.split()}
    assert all(f"bench {name}" in done.stdout for name in NAMES)


def test_output_that_nobody_reads_ends_quietly() -> None:
    """As in `list | head`, it ends with the status that a shell gives, and without a message."""
    for words in (["list"], ["--help"]):
        with subprocess.Popen(
            [sys.executable, "-m", "bench", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.close()
            assert process.stderr.read() == b"", words
        assert process.returncode in (0, BROKEN_PIPE), words


@pytest.mark.parametrize("number", signals.ENDING)
def test_a_signal_before_anything_is_begun_ends_quietly(number: int) -> None:
    """While a command is imported too, each signal that ends a program ends it with one line."""
    program = (
        "import os, sys; from bench import cli; sys.argv[1:] = ['show', '.']\n"
        "class Kills:\n"
        f"    def find_spec(self, name, *_): name == 'pandas' and os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Kills()); cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == INTERRUPTED
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("number", signals.ENDING)
def test_a_signal_that_is_held_interrupts_when_the_block_has_ended(number: int) -> None:
    """So that the import of a C extension ends whole, also if the block fails."""
    reached = []

    def fails() -> None:
        with signals.held():
            os.kill(os.getpid(), number)
            reached.append("after the signal")
            raise ImportError

    before = signals.on_end(signals.interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            fails()
    finally:
        signals.restore(before)
    assert reached == ["after the signal"]


def test_an_interrupt_inside_of_exec_ends_with_its_status(tmp_path: Path) -> None:
    """Where Python itself would end the program by the signal, as while a dataclass is made."""
    (tmp_path / "interrupted.py").write_text(
        "import sys; from bench import cli; from bench.commands import list as command\n"
        "command.run = lambda _: exec('raise KeyboardInterrupt')\n"
        "sys.argv[1:] = ['list']; sys.exit(cli.main())"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-m", "interrupted"], env=environment, capture_output=True, check=False)
    assert done.returncode == INTERRUPTED


@pytest.mark.parametrize(
    ("outcome", "status", "message"),
    [
        (0, 0, ""),
        (1, 1, ""),
        (WrongRequest("no"), 2, "attention-bench: no"),
        (CannotWrite("no"), 3, "attention-bench: no"),
        (NotComparable("no"), 3, "attention-bench: no"),
        (OSError(28, "no space", "file"), 3, "attention-bench: file: no space"),
        (KeyboardInterrupt(), 130, "attention-bench: interrupted; results so far are kept"),
    ],
    ids=repr,
)
def test_how_a_command_ends_is_its_exit_status(
    outcome: int | BaseException,
    status: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is the command's return value, or its error's status, with one line."""

    def run(_: argparse.Namespace) -> int:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr("bench.commands.list.run", run)
    assert main(["list"]) == status
    assert capsys.readouterr().err.strip() == message


def test_a_measuring_command_that_cannot_write_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Others have no `--run`."""

    def run(_: argparse.Namespace) -> int:
        raise CannotWrite("no")

    monkeypatch.setattr("bench.commands.run.run", run)
    assert main(["run"]) == UNMEASURED
    assert "no; fix this, then repeat the command with --run to resume" in capsys.readouterr().err


# commands that only read


def test_list_names_all_that_can_be_asked_for(printed: Printed) -> None:
    """It has sweeps, layers, implementations with their refusals, and models with their shapes."""
    output = printed("list")
    for words in ("quick", "article", "vit", "eager", "compiled_sdpa", "train", "retained"):
        assert words in output
    for words in ("mha_weights", "no (1)", "not written for this one", "t2t_stage_1", "N=577 C=768 H=12"):
        assert words in output


def test_plot_draws_from_the_csv_alone(run: Path, tmp_path: Path, printed: Printed) -> None:
    """Pictures come from results.csv, and of stages from the profiles beside it, into the requested folder."""
    alone = tmp_path / "alone"
    (alone / store.TRACES).mkdir(parents=True)
    shutil.copy(run / "results.csv", alone)
    store.save(graph(), alone)
    assert "latency-tokens" in printed("plot", alone, "--to", tmp_path / "there")
    drawn = {path.name.partition("-")[0] for path in (tmp_path / "there").iterdir()}
    assert drawn >= {"latency", "speedup", "memory", "stages"}


def test_a_folder_that_takes_no_pictures_is_named(run: Path, refused: Callable[..., str]) -> None:
    """In one line, without a traceback; it is beside the results unless another one was asked for."""
    (run / "plots").write_text("a file in its place")
    assert refused("plot", run, status=3) == f"attention-bench: {run / 'plots'}: File exists"
