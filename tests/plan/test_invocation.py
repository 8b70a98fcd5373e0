"""Commands in messages: each can be typed where the message is read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.plan import invocation
from bench.plan.invocation import COMMAND, ROOT, python, short, suite


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in no session, with this interpreter the first on the path."""
    monkeypatch.delenv("NOX_CURRENT_SESSION", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def answered(command: str) -> list[str]:
    """Return the words that a shell prints, in which this interpreter has no name."""
    path = os.defpath
    done = subprocess.run(command, shell=True, check=True, capture_output=True, text=True, env={"PATH": path})  # noqa: S602
    return done.stdout.split()


def test_in_the_checkout_and_with_its_interpreter_a_command_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the documents write it."""
    monkeypatch.chdir(ROOT)
    assert (python(), short(), suite()) == ("python", "python -m bench", "python -m bench")


@pytest.mark.parametrize(("name", "value"), [("NOX_CURRENT_SESSION", "bench"), ("PATH", "/nowhere")])
def test_an_interpreter_that_a_shell_does_not_find_is_named_by_its_path(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a session of nox, within it and started by its path; it finds the suite from a user's own folder."""
    monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    prefix, file = answered(f"{python()} -c 'import bench, sys; print(sys.prefix, bench.__file__)'")
    assert prefix == sys.prefix
    assert (tmp_path / file).resolve() == ROOT / "bench" / "__init__.py"


def test_the_folders_in_which_a_user_finds_modules_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkout is named once, though it is among them."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(tmp_path / "my modules")]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOX_CURRENT_SESSION", "bench")
    (tmp_path / "my modules").mkdir()
    (tmp_path / "my modules" / "users_own.py").touch()
    (name,) = answered(f"{python()} -c 'import bench, users_own; print(users_own.__name__)'")
    assert name == "users_own"
    (separators,) = answered(f"{python()} -c 'import os; print(os.environ[\"PYTHONPATH\"].count(os.pathsep))'")
    assert separators == "1"


def test_a_program_is_named_as_it_was_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name if a shell finds it, else by its path; help names it alone."""
    program = tmp_path / COMMAND
    program.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.chdir(tmp_path.parent)
    assert (short(), suite()) == (COMMAND, f"{tmp_path.name}/{COMMAND}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(invocation, "IS_INSTALLED", True)
    assert suite() == COMMAND
