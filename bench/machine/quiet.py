"""How quiet the machine is: before a run, and around each sample."""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.machine import facts, monotonic

WATCH_S = 0.5
"""The length of the check before a run: the system counts the load in hundredths of a second."""

PRODUCT = 64
"""The side of the matrices that are multiplied meanwhile: small enough for one thread and the first cache."""

BUSY_CORES = 0.25
"""The load of other processes, in cores, above which there is a warning: an idle desktop stays below."""

WIDE_SPREAD = 0.10
"""The relative interquartile range of a fixed product's times above which the clock or the load varies."""

WINDOW_S = 0.25
"""The length of a measurement; the system counts in hundredths of a second, so a shorter one would be imprecise."""


@dataclass(frozen=True)
class Preflight:
    """The state of the machine during some time.

    `others_cores` is the number of cores that other processes used, `switches` the involuntary context switches of
    this process, `spread` the interquartile range divided by the median of a small fixed product's times.
    """

    others_cores: float
    switches: int
    spread: float


def watch() -> Preflight:
    """Return the state of the machine in WATCH_S seconds, in which a small product is repeated on one core."""
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
    """Return the warnings for a run with `threads` threads on `cores` physical cores, empty if the machine is quiet."""
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
    """The work of other processes on the cores that this one may use.

    `own_s` returns the processor's seconds that the processes of this run have used so far.
    """

    def __init__(self, own_s: Callable[[], float]) -> None:
        self._used_s = own_s
        self.begin()

    def begin(self) -> None:
        """Begin to measure."""
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
    """How busy other processes keep the cores that the measurement leaves free, measured again after each window."""

    def __init__(self, threads: int, own_s: Callable[[], float]) -> None:
        self._free = max(1, facts.visible_cores() - threads)
        self._others = Others(own_s)
        self._latest = 0.0

    def share(self) -> float:
        """Return the share of the free cores that other processes kept busy in the latest window, 0 before its end.

        If the measurement leaves no core free, the share is that of one core.
        """
        if self._others.elapsed_s >= WINDOW_S:
            self._latest = self._others.cores() / self._free
            self._others.begin()
        return self._latest
