"""Commands in messages."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.show.command_text import ROOT, python


def test_a_command_in_a_message_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session of nox the interpreter is named by a path that a shell finds, and it is the one of the session."""
    monkeypatch.chdir(ROOT)
    assert python() == "python"
    monkeypatch.setenv("NOX_CURRENT_SESSION", "bench")
    command = f"{python()} -c 'import sys; print(sys.prefix)'"
    said = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)  # noqa: S602
    assert said.stdout.strip() == sys.prefix


def test_a_command_finds_the_suite_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user's own repository, where nothing of the suite is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOX_CURRENT_SESSION", "bench")
    command = f"{python()} -c 'import bench; print(bench.__file__)'"
    said = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)  # noqa: S602
    assert (tmp_path / said.stdout.strip()).resolve() == ROOT / "bench" / "__init__.py"
