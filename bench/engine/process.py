"""A process that ends together with all processes that it started."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

import psutil


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
            poll = select.poll()
            poll.register(self.descriptor, select.POLLIN)
            return bool(poll.poll(within_s * 1000))  # don't reap it: its id must not be reused
        deadline = time.monotonic() + within_s
        while not (has_ended := _is_dead(self.pid)) and time.monotonic() < deadline:
            time.sleep(0.01)
        return has_ended

    def end(self) -> int:
        """End the process, its group and all others that it started; return its exit status as in `subprocess`."""
        if self._code is None:
            _end_descendants(self.pid)
            for kill in (os.killpg, os.kill):  # a process that was just forked has no group yet
                with contextlib.suppress(ProcessLookupError, PermissionError):  # none is left, or only dead ones
                    kill(self.pid, signal.SIGKILL)
            self._code = self._reap(self.pid)
            if self.descriptor is not None:
                os.close(self.descriptor)
        return self._code


def launch(command: Sequence[str], log: IO[bytes], variables: Mapping[str, str], inherited: Sequence[int]) -> Process:
    """Return a new process without input that writes to `log` and inherits the descriptors in `inherited`.

    Raises OSError if it can't be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=variables,
        pass_fds=inherited,
        start_new_session=True,  # Ctrl-C reaches only the parent, which then ends its processes
    )
    return Process(process.pid, lambda _pid: process.wait())


def _end_descendants(pid: int) -> None:
    """Kill a living process's descendants in any session; on Linux it has adopted the orphans among them."""
    with contextlib.suppress(psutil.Error):
        for each in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                each.kill()


def _is_dead(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _pidfd(pid: int) -> int | None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # an old kernel, a sandbox, a Python made for an old kernel
            return os.pidfd_open(pid)
    return None
