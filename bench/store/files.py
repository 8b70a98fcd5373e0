"""Files of a run folder: each is replaced atomically, and only one process writes them."""

import contextlib
import itertools
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.plan.invocation import IS_INSTALLED, RESULTS

LOCK = "writer.lock"

IGNORED = ".gitignore"

PART = ".part"
"""The suffix of a file that is being written."""

MADE: set[Path] = set()
"""The folders that this process made for a run; those that stay empty are removed."""


def replace(path: Path, content: str | bytes) -> None:
    """Replace a file atomically: a reader sees the old content or the new, even after a power cut.

    Raises OSError if it can't be written, and keeps the old file.
    """
    if isinstance(content, str):
        content = content.encode(errors="surrogateescape")  # it may name a folder whose name isn't UTF-8
    temporary = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a file with a JSON object, and make its folder if needed; raises OSError like `replace`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps(content, indent=2) + "\n")


def new(parent: Path, name: str) -> Path:
    """Make a folder, with a number after its name if the name is taken, as by a run in the same second.

    The path is returned even if the folder can't be made: the first write into it will raise the error.
    """
    MADE.update(path for path in (parent, *parent.parents) if not path.exists())
    with contextlib.suppress(OSError):
        parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            folder = parent / (name if number == 1 else f"{name}-{number}")
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                MADE.add(folder)
                return folder
    return parent / name


def hide(folder: Path) -> None:
    """Have git ignore a run folder, unless it has a .gitignore already.

    Nothing is written inside the results folder of a checkout, because the checkout's .gitignore covers it.
    """
    path = folder / IGNORED
    if (IS_INSTALLED or not folder.resolve().is_relative_to(RESULTS)) and not path.exists():
        with contextlib.suppress(OSError):
            path.write_text("*\n", encoding="utf-8")


class Lock:
    """The right to write into a run folder, as a context manager; the system releases it when the process ends.

    A missing folder is made. If it is still empty at the end, it is removed, with the parents that were made for it.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK
        self.made: list[Path] = []
        self._folder = folder
        self._lock = FileLock(self.path, timeout=0, thread_local=False)

    def __enter__(self) -> Self:
        """Take the lock, and remove the partial files of a killed process.

        Raises WrongRequest if a file is in the folder's place or another process writes there, CannotWrite if the
        folder can't be written.
        """
        every = (self._folder, *self._folder.parents)
        self.made = [path for path in every if path in MADE or not path.exists()]
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise WrongRequest(f"the run folder {self._folder} can't be created: a file is in its place") from None
        except OSError as error:
            raise CannotWrite(f"the run folder {self._folder} can't be created: {error.strerror}") from None
        with refusing(f"the run folder {self._folder} can't be written", CannotWrite):
            self._acquire()
            for left in self._folder.glob(f".*{PART}"):
                left.unlink(missing_ok=True)
        return self

    def _acquire(self) -> None:
        try:
            self._lock.acquire()
        except Timeout:
            raise WrongRequest(
                f"{self._folder} is being written by {self._holder()}; wait until it ends, or use another folder"
            ) from None
        with contextlib.suppress(OSError):  # the disk may be full
            self.path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n", encoding="utf-8")

    def _holder(self) -> str:
        with contextlib.suppress(OSError):
            return self.path.read_text(encoding="utf-8", errors="replace").strip() or "another process"
        return "another process"

    def __exit__(self, *_: object) -> None:
        """Release the lock, if this process holds it, and remove empty folders that were made for it."""
        if self._lock.is_locked:
            self.path.unlink(missing_ok=True)
            self._lock.release()
        with contextlib.suppress(OSError):  # a folder that isn't empty stays, with its parents
            for path in self.made:
                path.rmdir()
        self.made = []
