"""Files are replaced at once or not at all, and one process writes into a folder."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bench.store import files
from bench.store.files import LOCK, Lock
from tests.refusals import refusal
from tests.store.disk import full_after


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    """Text and bytes replace the old content, and no other file stays; names need not be UTF-8."""
    path = tmp_path / "file"
    for content, expected in (("ü\n", "ü\n".encode()), (b"second", b"second"), (os.fsdecode(b"a \xff"), b"a \xff")):
        files.replace(path, content)
        assert path.read_bytes() == expected
    assert list(tmp_path.iterdir()) == [path]


def test_on_a_full_disk_the_old_file_stays(tmp_path: Path) -> None:
    """What can't be written whole is not written, and no half of it is left."""
    path = tmp_path / "file"
    path.write_text("old")
    with full_after(10), pytest.raises(OSError):  # noqa: PT011 - which one is the system's
        files.replace(path, "x" * 1000)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


PROGRAM = """
import sys
from pathlib import Path
from bench.store.files import Lock
lock = Lock(Path(sys.argv[1])).__enter__()
print("held", flush=True)
input()
"""


@pytest.mark.slow
def test_a_folder_has_one_writer_until_its_process_ends(tmp_path: Path) -> None:
    """The refusal names the process that holds it; if that one is killed, the next has it at once."""
    words = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        mine = Lock(tmp_path)
        assert f"written by process {other.pid} on {socket.gethostname()}; wait" in refusal(mine.__enter__)
        mine.__exit__()
        assert (tmp_path / LOCK).exists()
        other.kill()
    assert (tmp_path / LOCK).exists()
    mine.__enter__()
    assert "written by process" in refusal(Lock(tmp_path).__enter__)


def test_a_lock_that_is_given_back_leaves_no_file(tmp_path: Path) -> None:
    """It can be taken again; a refused lock releases nothing, and a killed run's file isn't a lock."""
    (tmp_path / LOCK).write_bytes(b'{"pid": 1, "half": ')
    (tmp_path / f".file.123{files.PART}").touch()
    with Lock(tmp_path):
        assert "is being written" in refusal(Lock(tmp_path).__enter__)
        assert [*tmp_path.iterdir()] == [tmp_path / LOCK]
    assert [*tmp_path.iterdir()] == []
    with Lock(tmp_path):
        assert (tmp_path / LOCK).exists()
