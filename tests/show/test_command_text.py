"""Commands in messages."""

import subprocess
import sys

import pytest

from bench.show.command_text import python


def test_a_command_in_a_message_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session of nox the interpreter is named by a path that a shell finds, and it is the one of the session."""
    assert python() == "python"
    monkeypatch.setenv("NOX_CURRENT_SESSION", "bench")
    command = f"{python()} -c 'import sys; print(sys.prefix)'"
    said = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)  # noqa: S602
    assert said.stdout.strip() == sys.prefix
