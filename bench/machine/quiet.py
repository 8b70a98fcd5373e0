"""Measure the load of other processes, before a run and around each sample."""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.machine import facts, monotonic

WATCH_S = 0.5
"""The seconds of the check before a run, long enough because the system counts load in hundredths of a second."""

PRODUCT = 64
"""The side of the matrices that the check multiplies, small enough for one thread and the L1 cache."""

BUSY_CORES = 0.25
"""The load of other processes, in cores, above which there is a warning; an idle desktop stays below it."""

WIDE_SPREAD = 0.10
"""The relative interquartile range of a fixed product's times above which there is a warning."""

WINDOW_S = 0.25
"""The least seconds of a window; shorter ones are imprecise, because the system counts in hundredths of a second."""


@dataclass(frozen=True)
class Preflight:
    """The load of the machine before a run.

    `others_cores` is the number of cores that other processes used, `switches` the involuntary context switches of
    this process, `spread` the interquartile range divided by the median of a small fixed product's times.
    """

    others_cores: float
    switches: int
    spread: float


def watch() -> Preflight:
    """Repeat a small product on one core for WATCH_S seconds, and return the load of the machine meanwhile."""
    matrix, others = np.ones((PRODUCT, PRODUCT)), Others(time.process_time)
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    times: list[float] = []
    start = time.perf_counter()
    while time.perf_counter() - start < WATCH_S:
        begin = time.perf_counter()
        _ = matrix @ matrix
        times.append(time.perf_counter() - begin)
    low, middle, high = np.percentile(times, [25, 50, 75])
    return Preflight(
        others_cores=others.cores(),
        switches=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches,
        spread=round(float((high - low) / middle), 3),
    )


def warnings(state: Preflight, threads: int, cores: int) -> list[str]:
    """Return the warnings for a run with `threads` threads on `cores` physical cores; empty if the machine is idle."""
    lines = []
    fewer = f", or use --threads {max(1, cores - 1)}" if threads > 1 else ""
    if state.others_cores > BUSY_CORES and threads >= cores:
        lines.append(
            f"other processes use {state.others_cores:.1f} cores, but the sweep needs "
            f"{'the only one' if cores == 1 else f'all {cores}'}. "
            "OpenMP waits for its slowest thread, so times can be many times too long. "
            f"Close them{fewer}"
        )
    elif state.others_cores > BUSY_CORES * max(1, cores - threads):
        lines.append(f"other processes use {state.others_cores:.1f} of {cores} cores; close them for precise times")
    if cores == 1:
        lines.append("only one core is available, so other work interrupts the measured calls; expect wide intervals")
    if state.spread > WIDE_SPREAD:
        lines.append(
            f"the time of a fixed matrix product varies by {state.spread:.0%}, because the clock or the load changes"
        )
    return lines


class Others:
    """The load of other processes on the cores that this process may use.

    `own_s` returns the processor seconds that the processes of this run have used so far.
    """

    def __init__(self, own_s: Callable[[], float]) -> None:
        self._used_s = own_s
        self.begin()

    def begin(self) -> None:
        """Begin a new measurement."""
        self._since_s, self._own_s, self._busy_s = monotonic.now_s(), self._used_s(), facts.busy_s()

    @property
    def elapsed_s(self) -> float:
        """The seconds since the beginning."""
        return monotonic.now_s() - self._since_s

    def cores(self) -> float:
        """Return the number of cores that other processes have kept busy since the beginning."""
        own_s, busy_s = self._used_s() - self._own_s, facts.busy_s() - self._busy_s
        return round(max(0.0, busy_s - own_s) / self.elapsed_s, 2)


class Interference:
    """The load of other processes on the cores that the measurement leaves free, updated after each window."""

    def __init__(self, threads: int, own_s: Callable[[], float]) -> None:
        self._free = max(1, facts.visible_cores() - threads)
        self._others = Others(own_s)
        self._latest = 0.0

    def share(self) -> float:
        """Return the share of the free cores that other processes used in the last window, 0 before the first one ends.

        If the measurement leaves no core free, the share is relative to one core.
        """
        if self._others.elapsed_s >= WINDOW_S:
            self._latest = self._others.cores() / self._free
            self._others.begin()
        return self._latest
