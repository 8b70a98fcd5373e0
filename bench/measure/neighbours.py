"""What other processes do while slots are timed: on a neighbouring core they slow ours without taking it."""

import time

import psutil

from bench.store import machine

WINDOW_S = 0.25
"""The system counts in hundredths of a second, so that a shorter look would see little."""


class Neighbours:
    """How busy others keep the cores that we leave free, looked at again whenever a window is over.

    The process `beside` takes turns with this one, and what it does counts as our own.
    """

    def __init__(self, threads: int, beside: int | None = None) -> None:
        self._free = max(1, machine.visible_cores() - threads)
        self._beside = beside
        self._beside_s = 0.0
        self._latest = 0.0
        self._start()

    def share(self) -> float:
        """Return the share of the free cores that other processes kept busy in the latest window, 0 before it.

        Where we leave none free, the share is that of one.
        """
        elapsed_s = time.perf_counter() - self._since_s
        if elapsed_s >= WINDOW_S:
            own_s, busy_s = self._used_s() - self._own_s, machine.busy_s() - self._busy_s
            self._latest = max(0.0, busy_s - own_s) / elapsed_s / self._free
            self._start()
        return self._latest

    def _start(self) -> None:
        self._since_s, self._own_s, self._busy_s = time.perf_counter(), self._used_s(), machine.busy_s()

    def _used_s(self) -> float:
        """Return the seconds of all cores that are our own; a process beside us that has ended adds no more."""
        if self._beside is not None:
            try:
                times = psutil.Process(self._beside).cpu_times()
                self._beside_s = float(times.user + times.system)
            except psutil.Error:
                self._beside = None
        return time.process_time() + self._beside_s
