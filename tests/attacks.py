"""What harms other processes of a run: signals and limits.

A process does it in a call or when it is made. Nothing here needs torch.
"""

import contextlib
import os
import resource
import signal
from collections.abc import Callable
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
