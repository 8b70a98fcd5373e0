"""Files are replaced at once or not at all."""

import os
from pathlib import Path

import pytest

from bench.store import atomic
from tests.store.disk import full_after


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    """Text and bytes take the place of what was there, and nothing else stays."""
    path = tmp_path / "file"
    atomic.replace(path, "first ü\n")
    assert path.read_text(encoding="utf-8") == "first ü\n"
    atomic.replace(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_is_not_utf_8_can_be_written(tmp_path: Path) -> None:
    """Its bytes stay as they are."""
    atomic.replace(tmp_path / "file", os.fsdecode(b"a \xff"))
    assert (tmp_path / "file").read_bytes() == b"a \xff"


def test_on_a_full_disk_the_old_file_stays(tmp_path: Path) -> None:
    """What can't be written whole is not written, and no half of it is left."""
    path = tmp_path / "file"
    path.write_text("old")
    with full_after(10), pytest.raises(OSError):  # noqa: PT011 - which one is the system's
        atomic.replace(path, "x" * 1000)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_kill_left_is_removed(tmp_path: Path) -> None:
    """Only the leftovers of the named files go."""
    for name in (".file.123", "file", ".other.123", ".hidden"):
        (tmp_path / name).touch()
    atomic.clear(tmp_path, ["file"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", ".other.123", "file"]
