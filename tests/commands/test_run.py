"""The command that measures a sweep: pytest without what a user's own tests ask of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a folder in which pytest can't start."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise SystemExit(9)\n")
    return tmp_path


def ran(folder: Path, *words: str) -> tuple[int, str]:
    """Return the exit status of the command in a folder, and what it wrote."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "--no-such-option"}
    command = [sys.executable, "-m", "bench", "run", *words]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_settings_of_the_folder_do_not_reach_it(repository: Path) -> None:
    """The folder's pytest.ini and conftest.py and pytest's variables change nothing; the run writes nothing there."""
    before = {*repository.iterdir()}
    status, text = ran(repository, "--num-tokens", "64,128", "--collect-only", "-q")
    assert (status, "2 tests collected" in text) == (0, True), text
    assert {*repository.iterdir()} == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tests"], "run takes options alone, got tests"),
        (["--no-such-option"], "usage: python -m bench run [options]"),
    ],
)
def test_a_wrong_request_has_the_status_of_pytest(repository: Path, words: list[str], said: str) -> None:
    """The status is 4, as when pytest itself is called, and the line names what is wrong."""
    status, text = ran(repository, *words)
    assert (status, said in text) == (4, True), text
