"""Interference by other processes while samples are taken: even on another core they slow ours."""

import time

import psutil

from bench.store import machine

WINDOW_S = 0.25
"""The length of a measurement; the system counts in hundredths of a second, so a shorter one would be imprecise."""


class Interference:
    """How busy other processes keep the cores that the measurement leaves free, measured again after each window.

    The process `beside` alternates with this one, and its time counts as our own.
    """

    def __init__(self, threads: int, beside: int | None = None) -> None:
        self._free = max(1, machine.visible_cores() - threads)
        self._beside = beside
        self._beside_s = 0.0
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

    def _used_s(self) -> float:
        """Return our own seconds on all cores; if the process `beside` has ended, its seconds no longer grow."""
        if self._beside is not None:
            try:
                times = psutil.Process(self._beside).cpu_times()
                self._beside_s = float(times.user + times.system)
            except psutil.Error:
                self._beside = None
        return time.process_time() + self._beside_s
