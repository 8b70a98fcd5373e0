"""Interference by other processes while samples are taken: even on another core they slow ours."""

import time
from collections.abc import Callable
from pathlib import Path

from bench.store import machine

WINDOW_S = 0.25
"""The length of a measurement; the system counts in hundredths of a second, so a shorter one would be imprecise."""


class Interference:
    """How busy other processes keep the cores that the measurement leaves free, measured again after each window.

    `own_s` returns the processor's seconds that the processes of this run have used so far.
    """

    def __init__(self, threads: int, own_s: Callable[[], float]) -> None:
        self._free = max(1, machine.visible_cores() - threads)
        self._used_s = own_s
        self._latest = 0.0
        self._start()

    def share(self) -> float:
        """Return the share of the free cores that other processes kept busy in the latest window, 0 before its end.

        If the measurement leaves no core free, the share is that of one core.
        """
        elapsed_s = time.perf_counter() - self._since_s
        if elapsed_s >= WINDOW_S:
            own_s, busy_s = self._used_s() - self._own_s, machine.busy_s() - self._busy_s
            self._latest = max(0.0, busy_s - own_s) / elapsed_s / self._free
            self._start()
        return self._latest

    def _start(self) -> None:
        self._since_s, self._own_s, self._busy_s = time.perf_counter(), self._used_s(), machine.busy_s()


def is_stopped(pid: int) -> bool:
    """Return whether a process was stopped by a signal."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "T"
    except (OSError, ValueError, IndexError):  # no Linux, or the process has ended
        return False


def queued_s(pid: int | str = "self") -> float:
    """Return the seconds that a process's first thread has waited for a core so far, 0.0 if the system doesn't say."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):  # no Linux, a kernel without it, a process that has ended
        return 0.0
