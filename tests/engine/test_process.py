"""A process that is ended with all that it started."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from bench.engine.process import Process, start
from tests.engine.test_worker import has_ended, lives

pytestmark = pytest.mark.slow

CHILD = "import os, pathlib, sys, time; {}; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(60)"
PARENT = """
import os, pathlib, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]])
while not (pathlib.Path(sys.argv[2]).exists() and pathlib.Path(sys.argv[2]).read_text()):
    time.sleep(0.01)
os._exit(3)
"""


@pytest.fixture
def log() -> Iterator[IO[bytes]]:
    """Return a file without a name."""
    with tempfile.TemporaryFile() as file:
        yield file


@pytest.mark.parametrize("step", ["pass", "os.setsid()"])
def test_what_it_started_ends_with_it(step: str, tmp_path: Path, log: IO[bytes]) -> None:
    """A child that outlives it is ended too, in its group or in a session of its own; the exit status is its own."""
    process = start([sys.executable, "-c", PARENT, CHILD.format(step), str(tmp_path / "pid")], log, {}, ())
    assert process.has_ended(30)
    child = int((tmp_path / "pid").read_text())
    assert lives(child)
    assert (process.end(), process.end()) == (3, 3)
    assert has_ended(child)


def test_a_python_without_pidfds_can_start_processes(log: IO[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Some builds of Python lack the function; the end is then found by looking."""
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    started = start([sys.executable, "-c", "raise SystemExit(3)"], log, os.environ, [])
    assert started.descriptor is None
    assert started.has_ended(60)
    assert started.end() == 3


def test_one_that_lives_is_killed(log: IO[bytes]) -> None:
    """Its exit status says so."""
    process = start([sys.executable, "-c", "import time; time.sleep(60)"], log, {}, ())
    assert not process.has_ended()
    assert process.end() == -signal.SIGKILL
    assert process.has_ended()


def test_a_forked_process_ends_with_its_group(tmp_path: Path) -> None:
    """Its exit status comes from the server, which is asked once."""
    asked: list[int] = []
    command = [sys.executable, "-c", PARENT, CHILD.format("pass"), str(tmp_path / "pid")]
    child = subprocess.Popen(command, start_new_session=True)

    def reap(pid: int) -> int:
        asked.append(pid)
        return child.wait()

    process = Process(child.pid, reap)
    assert process.has_ended(30)
    grandchild = int((tmp_path / "pid").read_text())
    assert lives(grandchild)
    assert (process.end(), process.end()) == (3, 3)
    assert asked == [child.pid]
    assert has_ended(grandchild)
