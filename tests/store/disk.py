"""A disk that is full."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """Let no file grow beyond a size: the system takes what still fits, and refuses the rest."""
    resource = pytest.importorskip("resource", reason="only POSIX can limit the size of files")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def small(folder: Path, kib: int) -> Iterator[None]:
    """Mount a file system of so many KiB on a folder; skips the test where that isn't allowed."""
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("needs the right to mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def enlarge(folder: Path, kib: int) -> None:
    """Give a file system that `small` mounted another size."""
    subprocess.run(["mount", "-o", f"remount,size={kib}k", str(folder)], check=True)
