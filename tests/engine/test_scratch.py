"""Temporary folders: what a kill leaves behind is removed at the next start, and nothing else is."""

import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from bench.engine.scratch import LOCK, PREFIX, Scratch

pytestmark = pytest.mark.slow

KILLED = """
import os, pathlib, signal, tempfile
from bench.engine.scratch import Scratch
tempfile.tempdir = {!r}
scratch = Scratch()
(scratch.folder / "compiled").mkdir()
(scratch.folder / "compiled" / "kernel.so").touch()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have temporary folders made in the test's own one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_it_is_there_until_it_is_closed(tmp_path: Path) -> None:
    """Two of one process stand side by side, and closing twice does no harm."""
    with closing(Scratch()) as first, closing(Scratch()) as second:
        (first.folder / "file").touch()
        assert {first.folder, second.folder} == {*tmp_path.iterdir()}
    second.close()
    assert not [*tmp_path.iterdir()]


def test_what_a_kill_left_behind_is_removed_at_the_next_start(tmp_path: Path) -> None:
    """The folder of a process that was killed goes with all that is in it; one whose owner lives stays."""
    with closing(Scratch()) as living:
        subprocess.run([sys.executable, "-c", KILLED.format(str(tmp_path))], check=False)
        assert len([*tmp_path.iterdir()]) == 2
        with closing(Scratch()) as fresh:
            assert {*tmp_path.iterdir()} == {living.folder, fresh.folder}


def test_nothing_else_is_touched(tmp_path: Path) -> None:
    """A folder of the user's own with our prefix stays, and so does one of another prefix with a lock file."""
    (tmp_path / f"{PREFIX}mine").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / LOCK).touch()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    Scratch().close()
    assert {path.name for path in tmp_path.iterdir()} == {f"{PREFIX}mine", "other", f"{PREFIX}link"}
    assert (tmp_path / "other" / LOCK).exists()
