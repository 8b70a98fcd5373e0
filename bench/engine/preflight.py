"""A look at the machine before a run, whether it is quiet enough for the threads that are asked for."""

import resource
import time
from dataclasses import dataclass

import numpy as np

from bench.store import machine

LOOK_S = 1.0

PRODUCT = 64
"""The side of the matrices that are multiplied meanwhile: small enough for one thread and the first cache."""

BUSY_CORES = 0.25
"""So much of a core in use by others counts as a neighbour: an idle desktop stays below."""

WIDE_SPREAD = 0.10
"""A fixed product whose quartiles lie further apart than this runs at a clock, or beside someone, that changes."""


@dataclass(frozen=True)
class Preflight:
    """What a second of watching showed.

    `others_cores` is the number of cores that other processes used, `switches` the involuntary context switches of
    our own, `spread` the interquartile range over the median of a small fixed product's times.
    """

    others_cores: float
    switches: int
    spread: float


def look(seconds: float = LOOK_S) -> Preflight:
    """Return what the machine is doing, watched while a small product is repeated on one core."""
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


def warnings(seen: Preflight, threads: int, cores: int) -> list[str]:
    """Return what to say before a run with so many threads on so many physical cores, nothing if all is well."""
    said = []
    fewer = f", or use --threads {max(1, cores - 1)}" if threads > 1 else ""
    if seen.others_cores > BUSY_CORES and threads >= cores:
        said.append(
            f"other processes use {seen.others_cores:.1f} cores and the sweep asks for all {cores}: "
            f"OpenMP waits for its slowest thread, so times can be many times too long; "
            f"quiet the machine{fewer}"
        )
    elif seen.others_cores > BUSY_CORES * max(1, cores - threads):
        said.append(
            f"other processes use {seen.others_cores:.1f} of {cores} cores: "
            "slots that they interrupt are flagged; quiet the machine for a claim"
        )
    if seen.spread > WIDE_SPREAD:
        said.append(
            f"a fixed product's time varies by {seen.spread:.0%}: the clock or a neighbour changes while we measure"
        )
    return said
