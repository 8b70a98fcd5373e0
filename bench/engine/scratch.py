"""A temporary folder that is removed with its process; one that a killed process left is removed at a later start."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

PREFIX = "attention-bench-"

LOCK = "owner.lock"
"""The file in the folder that the owner keeps locked while it lives."""


class Scratch:
    """A new temporary folder; making one also removes folders whose owner is dead.

    Only folders of this user with the prefix and the lock file are removed.
    """

    def __init__(self) -> None:
        for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
            _remove_if_abandoned(lock)
        while True:
            self._temporary = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
            self.folder = Path(self._temporary.name)
            self._lock = (self.folder / LOCK).open("xb")
            if _locked(self._lock) and (self.folder / LOCK).exists():
                return
            self.close()  # another process removed it before it was locked

    def close(self) -> None:
        """Remove the folder, if it is still there."""
        self._temporary.cleanup()
        self._lock.close()


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_if_abandoned(lock: Path) -> None:
    try:
        if lock.parent.is_symlink() or lock.lstat().st_uid != os.getuid():
            return
        with lock.open("rb+") as file:
            if _locked(file):
                _remove(lock.parent)
    except OSError:  # its owner removed it meanwhile
        return


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != LOCK:  # the lock goes last: a folder without it would never be removed
            shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
