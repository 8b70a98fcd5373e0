"""Commands in messages: each can be typed where the message is read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.plan.invocation import ROOT, python, short, suite


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
