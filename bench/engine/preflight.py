"""A check before a run that the machine is quiet enough for the sweep's threads."""

import resource
import time
from dataclasses import dataclass

import numpy as np

from bench.store import machine

WATCH_S = 1.0

PRODUCT = 64
"""The side of the matrices that are multiplied meanwhile: small enough for one thread and the first cache."""

BUSY_CORES = 0.25
"""The load of other processes, in cores, above which there is a warning: an idle desktop stays below."""

WIDE_SPREAD = 0.10
"""The relative interquartile range of a fixed product's times above which the clock or the load varies."""


@dataclass(frozen=True)
class Preflight:
    """The state of the machine during one second.

    `others_cores` is the number of cores that other processes used, `switches` the involuntary context switches of
    this process, `spread` the interquartile range divided by the median of a small fixed product's times.
    """

    others_cores: float
    switches: int
    spread: float


def watch(seconds: float = WATCH_S) -> Preflight:
    """Return the state of the machine while a small product is repeated on one core."""
    matrix = np.ones((PRODUCT, PRODUCT))
    busy_s, own_s = machine.busy_s(), time.process_time()
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    times: list[float] = []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        _ = matrix @ matrix
        times.append(time.perf_counter() - begin)
    elapsed = time.perf_counter() - start
    low, middle, high = np.percentile(times, [25, 50, 75])
    others = (machine.busy_s() - busy_s - (time.process_time() - own_s)) / elapsed
    return Preflight(
        others_cores=round(max(0.0, others), 2),
        switches=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches,
        spread=round(float((high - low) / middle), 3),
    )


def warnings(state: Preflight, threads: int, cores: int) -> list[str]:
    """Return the warnings for a run with `threads` threads on `cores` physical cores, empty if the machine is quiet."""
    lines = []
    fewer = f", or use --threads {max(1, cores - 1)}" if threads > 1 else ""
    if state.others_cores > BUSY_CORES and threads >= cores:
        lines.append(
            f"other processes use {state.others_cores:.1f} cores and the sweep asks for all {cores}: "
            f"OpenMP waits for its slowest thread, so times can be many times too long; "
            f"quiet the machine{fewer}"
        )
    elif state.others_cores > BUSY_CORES * max(1, cores - threads):
        lines.append(
            f"other processes use {state.others_cores:.1f} of {cores} cores: "
            "samples that they interrupt are flagged; quiet the machine for a claim"
        )
    if cores == 1:
        lines.append("only one core can be used: other work takes it from what is measured, so expect wide intervals")
    if state.spread > WIDE_SPREAD:
        lines.append(
            f"a fixed product's time varies by {state.spread:.0%}: the clock or the load changes while we measure"
        )
    return lines
