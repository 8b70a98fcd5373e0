"""The energy of a call, from a GPU's energy counter during additional calls after the rounds.

The samples of the rounds can't be used: they include the overwriting of L2, and the counter moves in steps that are as
long as many samples (20 to 100 ms). So calls are made without a pause, and the energy is the difference between two
steps of the counter. It is the energy of the whole board during that time.
"""

import math
from collections.abc import Callable
from time import perf_counter

from bench.machine.facts import ask_nvml
from bench.measure import nvml
from bench.measure.clock import Call

SPAN_S = 0.2
"""The least time between the first and the last step of the counter."""

BATCH_S = 0.01
"""The time of the calls between two readings of the counter; a reading takes up to a tenth of a millisecond."""

STILL_S = 1.0
"""A counter that doesn't move for this time is unusable."""

Counter = Callable[[], float | None]
"""Returns the joules that a device has used since any fixed time, None if it can't be read."""


def per_call_j(read: Counter, call: Call, call_s: float, wait: Callable[[], None]) -> float | None:
    """Return the joules of one call, which takes about `call_s`; None if the counter doesn't move or can't be read.

    `wait` waits for the work of calls.
    The calls before the first step of the counter and after the last are made, but not counted.
    """
    calls = max(1, math.ceil(BATCH_S / call_s))
    start_j, start_s, counted = math.nan, math.nan, 0
    latest_j, moved_s = read(), perf_counter()
    while latest_j is not None:
        for _ in range(calls):
            call()
        wait()
        counted += calls
        now_j, now_s = read(), perf_counter()
        if now_j is None or (now_j <= latest_j and now_s - moved_s > STILL_S):
            return None
        if now_j <= latest_j:
            continue
        latest_j, moved_s = now_j, now_s
        if math.isnan(start_j):
            start_j, start_s, counted = now_j, now_s, 0
        elif now_s - start_s >= SPAN_S:
            return (now_j - start_j) / counted
    return None


def of_gpu(device: str) -> Counter | None:
    """Return the counter of a GPU's board; None if NVML doesn't give one."""
    gpu = ask_nvml(lambda _: nvml.handle(device))

    def read() -> float | None:
        return ask_nvml(lambda of: float(of.nvmlDeviceGetTotalEnergyConsumption(gpu)) / 1e3)

    return read if gpu is not None and read() is not None else None
