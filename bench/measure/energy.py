"""The energy of a call, from a GPU's energy counter during additional calls after the rounds.

The samples of the rounds can't be used: they include the overwriting of L2, and the counter moves in steps that are as
long as many samples (20 to 100 ms). So calls are made without a pause, and the energy is the difference between two
steps of the counter. It is the energy of the whole board during that time.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import repeat
from time import perf_counter

from bench.measure import nvml
from bench.measure.clock import Call

SPAN_S = 0.2
"""The least time between the first and the last step of the counter."""

BATCH_S = 0.01
"""The time of the calls between two readings of the counter; a reading takes up to a tenth of a millisecond."""

STILL_S = 1.0
"""A counter that doesn't move for this time is unusable."""

Counter = Callable[[], float]
"""Returns the joules that a device has used since any fixed time."""


def per_call_j(read: Counter, call: Call, call_s: float, wait: Callable[[], None]) -> float | None:
    """Return the joules of one call, which takes about `call_s`; None if the counter doesn't move or can't be read.

    `wait` waits for the work of calls.
    The calls before the first step of the counter and after the last are made, but not counted.
    """
    calls = max(1, math.ceil(BATCH_S / call_s))
    with suppress(UnreadableError):
        return _between_steps(read, lambda: _batch(call, calls, wait), calls)
    return None


class UnreadableError(Exception):
    """The counter can no longer be read."""


def _between_steps(read: Counter, batch: Callable[[], None], calls: int) -> float | None:
    start_j, start_s, counted = math.nan, math.nan, 0
    latest_j, moved_s = read(), perf_counter()
    while True:
        batch()
        counted += calls
        now_j, now_s = read(), perf_counter()
        if now_j > latest_j:
            latest_j, moved_s = now_j, now_s
            if math.isnan(start_j):
                start_j, start_s, counted = now_j, now_s, 0
            elif now_s - start_s >= SPAN_S:
                return (now_j - start_j) / counted
        elif now_s - moved_s > STILL_S:
            return None


def _batch(call: Call, calls: int, wait: Callable[[], None]) -> None:
    for _ in repeat(None, calls):
        call()
    wait()


def of_gpu(device: str) -> Counter | None:
    """Return the counter of a GPU's board; None if NVML doesn't give one."""
    try:
        import pynvml
    except ImportError:
        return None

    def read() -> float:
        try:
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3
        except pynvml.NVMLError as error:
            raise UnreadableError from error

    try:
        handle = nvml.handle(device)
        read()
    except (pynvml.NVMLError, UnreadableError):
        return None
    return read
