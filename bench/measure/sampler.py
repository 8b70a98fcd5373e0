"""The warm-up of an implementation, and one sample of it."""

import math
import resource
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from bench.measure.clock import Call, Timer
from bench.sampling.samples import Sample

LEAST_TIMING_S = 1e-3
LEAST_TIMING_CLOCKS = 1000
"""A timing takes at least a millisecond and 1000 readings of the clock, so that the clock is 0.1 % of it."""

WINDOWS = ((0.005, 5), (0.02, 3), (math.inf, 1))
"""Pairs: the longest seconds per call, and the timings per warm-up window. Each was called before, for its check."""

WARM_QUARTILES, WARM_SPREAD = 0.05, 0.10
"""Two windows agree if their quartiles differ by less than 5 % and their spreads by less than 10 % of the median
(pyperf's warm-up test)."""

WARM_TIMINGS, WARM_S = 300, 5.0
"""The most timings and seconds of a warm-up; it ends then even if no windows agree, but not before there are two."""


@dataclass(frozen=True)
class Pace:
    """What the warm-up has found: the calls of a timing, the seconds of a call, and whether the warm-up settled."""

    calls: int
    call_s: float
    settled: bool


def warm_up(
    call: Call, timer: Timer, clock_overhead_s: float, most_s: float = WARM_S, previous_s: float | None = None
) -> Pace:
    """Call until two consecutive windows of timings agree or `most_s` is over, and return the pace for the samples.

    `previous_s` are the seconds of the previous call, if known; they count as a window if a window is one timing.
    """
    deadline = perf_counter() + min(most_s, WARM_S)
    least_s = max(LEAST_TIMING_S, LEAST_TIMING_CLOCKS * clock_overhead_s)
    calls, per_call_s = _calibrate(call, timer, least_s)
    window = next(timings for longest_s, timings in WINDOWS if per_call_s <= longest_s)
    values = [per_call_s] if calls == 1 else []  # the calibration of a long call is already a timing
    if values and window == 1 and previous_s is not None:
        values.insert(0, previous_s)
    settled = _settled(values, window)
    while not settled and len(values) < WARM_TIMINGS:
        if len(values) >= 2 * window and perf_counter() > deadline:
            break
        values.append(timer(call, calls))
        settled = _settled(values, window)
    warm_s = min(values, default=per_call_s)
    return Pace(math.ceil(least_s / warm_s), warm_s, settled)


def sample(call: Call, timer: Timer, calls: int, timings: int) -> Sample:
    """Return one sample of an implementation: so many timings of so many calls."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    timings_s = tuple(timer(call, calls) for _ in range(timings))
    after = resource.getrusage(resource.RUSAGE_SELF)
    switches, faults = after.ru_nivcsw - before.ru_nivcsw, after.ru_minflt - before.ru_minflt
    return Sample(timings_s, switches, faults)


def _calibrate(call: Call, timer: Timer, least_s: float) -> tuple[int, float]:
    calls = 1
    while True:
        per_call_s = timer(call, calls)
        if per_call_s * calls >= least_s:
            return calls, per_call_s
        calls = max(2 * calls, math.ceil(least_s / max(per_call_s, 1e-9)))


def _settled(values: list[float], window: int) -> bool:
    return len(values) >= 2 * window and _agree(values[-2 * window : -window], values[-window:])


def _agree(first: list[float], second: list[float]) -> bool:
    quartiles_1, quartiles_2 = np.percentile(first, [25, 50, 75]), np.percentile(second, [25, 50, 75])
    middle = float(quartiles_1[1])
    spread_1, spread_2 = quartiles_1[2] - quartiles_1[0], quartiles_2[2] - quartiles_2[0]
    return bool(
        np.all(np.abs(quartiles_2 - quartiles_1) <= WARM_QUARTILES * quartiles_1)
        and abs(spread_2 - spread_1) <= WARM_SPREAD * middle
    )
