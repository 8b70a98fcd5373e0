"""Processes that are ended together with all processes that they started."""

import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

import psutil

MARK = "ATTENTION_BENCH_PROCESS"
"""The environment variable that a process passes to those it starts, so that they are found in any session."""

STRAYS_S = 5.0
"""The most seconds for ending processes that left the group: one that hangs in the system can't be ended."""


class Process:
    """A process that is ended together with all processes that it started.

    `reap` waits for its end, once, and returns its exit status as in `subprocess`.
    `descriptor` is a pidfd, readable once the process has ended; None if the system has none.
    """

    def __init__(self, pid: int, reap: Callable[[int], int]) -> None:
        self.pid = pid
        self.descriptor = _pidfd(pid)
        self._reap = reap
        self._code: int | None = None

    def has_ended(self, within_s: float = 0.0) -> bool:
        """Wait at most `within_s` for the end of the process, and return whether it has ended."""
        if self._code is not None:
            return True
        if self.descriptor is not None:
            return _is_readable(self.descriptor, within_s)  # it isn't reaped: its id must not be reused
        deadline = time.monotonic() + within_s
        while not (has_ended := _is_dead(self.pid)) and time.monotonic() < deadline:
            time.sleep(0.01)
        return has_ended

    def end(self) -> int:
        """End the process, its group and all others that it started; return its exit status as in `subprocess`."""
        if self._code is None:
            _kill_group(self.pid)
            self._code = self._reap(self.pid)
            if self.descriptor is not None:
                os.close(self.descriptor)
        return self._code


def start(command: Sequence[str], log: IO[bytes], variables: Mapping[str, str], inherited: Sequence[int]) -> Process:
    """Return a new process that reads nothing, writes to `log`, and inherits the descriptors in `inherited`.

    Raises OSError if it can't be started.
    """
    mark = secrets.token_hex(16)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env={**variables, MARK: mark},
        pass_fds=inherited,
        start_new_session=True,  # Ctrl-C reaches only the parent, which then ends its processes
    )

    def reap(_pid: int) -> int:
        code = process.wait()
        _end_marked(mark)
        return code

    return Process(process.pid, reap)


def _is_dead(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _is_readable(descriptor: int, within_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # a process that was just forked has no group yet
        with contextlib.suppress(ProcessLookupError, PermissionError):  # no process is left, or only dead ones
            kill(pid, signal.SIGKILL)


def _pidfd(pid: int) -> int | None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # an old kernel, a sandbox, a Python made for an old kernel
            return os.pidfd_open(pid)
    return None


def _end_marked(mark: str) -> None:
    """Kill all processes with a mark, repeatedly because one may start another meanwhile, for at most STRAYS_S."""
    deadline = time.monotonic() + STRAYS_S
    while strays := list(_marked(mark)):
        for stray in strays:
            with contextlib.suppress(psutil.Error):
                stray.kill()
        if time.monotonic() > deadline:
            return
        time.sleep(0.01)


def _marked(mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                yield process
