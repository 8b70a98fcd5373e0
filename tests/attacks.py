"""What harms other processes of a run: signals, limits, and what is done to their files and their memory.

A process does it in a call or when it is made. Nothing here needs torch.
"""

import contextlib
import mmap
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil


def siblings() -> list[int]:
    """Return the processes that the server of this one has forked."""
    return [each.pid for each in psutil.Process(os.getppid()).children() if each.pid != os.getpid()]


def kill(number: int, *, most: int = 99) -> None:
    """Send a signal to siblings."""
    for pid in siblings()[:most]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def limit(number: int, value: int, *, most: int = 99) -> None:
    """Limit what siblings may use."""
    for pid in siblings()[:most]:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, number, (value, value))


def end_first() -> None:
    """Let siblings be the first to end when memory runs out."""
    for pid in siblings():
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def files() -> Iterator[Path]:
    """Yield the temporary files and folders of all runs."""
    for folder in Path(tempfile.gettempdir()).glob("attention-bench-*"):
        yield from (path for path in folder.rglob("*") if path.name != "owner.lock")


def write_into_files() -> None:
    """Spoil the beginning of each file."""
    for path in files():
        with contextlib.suppress(OSError), path.open("r+b") as file:
            file.write(b"abcd")


def empty_caches() -> None:
    """Let each file hold zeros."""
    for path in files():
        with contextlib.suppress(OSError):
            if path.is_file():
                path.write_bytes(bytes(path.stat().st_size))


def put_folders() -> None:
    """Put a folder in the place of each file."""
    for path in files():
        with contextlib.suppress(OSError):
            if path.is_file():
                path.unlink()
                path.mkdir()
            elif not path.name.startswith("compiled"):
                shutil.rmtree(path)
                path.mkdir()


def write_into_memory() -> None:
    """Spoil the files without names of siblings and of the processes above."""
    parents = [each.pid for each in psutil.Process().parents()]
    for pid in (*siblings(), *parents):
        for path in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError, ValueError):
                if "memfd:" in str(path.readlink()):
                    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
                        content[:4] = b"abcd"


IN_A_CALL: dict[str, Callable[[], None]] = {
    "test:kills": partial(kill, signal.SIGKILL),
    "test:terminates_one": partial(kill, signal.SIGTERM, most=1),
    "test:limits_memory": partial(limit, resource.RLIMIT_AS, 1 << 20),
    "test:limits_cpu_of_one": partial(limit, resource.RLIMIT_CPU, 1, most=1),
    "test:is_first_without_memory": end_first,
}
WHEN_MADE: dict[str, Callable[[], None]] = {
    "test:kills_when_made": partial(kill, signal.SIGSEGV),
    "test:limits_memory_when_made": partial(limit, resource.RLIMIT_AS, 1 << 20),
}
"""What scripted workers of these names do, in the second sample or while they are prepared."""
