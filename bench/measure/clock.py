"""The clock: seconds per call of one timing, by wall time or by CUDA events.

The functions that read the time are bound here before any implementation is imported, so a patched clock has no effect.
"""

import math
from collections.abc import Callable
from functools import cache
from itertools import repeat
from time import perf_counter
from typing import Protocol

import torch
from torch.cuda import synchronize

Call = Callable[[], object]
Timer = Callable[[Call, int], float]
"""`timer(call, calls)` returns the seconds per call of `calls` consecutive calls."""


class HoldingTimer(Protocol):
    """A timer that also appends the results of the calls to a list, if one is given.

    All are held until the last call has ended, so that nothing in the process says which of them is judged.
    """

    def __call__(self, call: Call, calls: int, results: list[object] | None = None) -> float:
        """Return the seconds per call."""


SUBMISSIONS = 15
"""The number of calls that are submitted one by one: for the median of the host's time, and for the least late work."""

L2_FACTOR = 2
"""The size of the buffer in units of L2; writing it removes all data of the last call from L2."""


def timer(device: str, timing: str) -> HoldingTimer:
    """Return the timer for a device and a timing mode; raises ValueError for a mode that the device doesn't have."""
    if timing == "host":
        return _host if device == "cpu" else _host_synchronised
    if device == "cpu":
        raise ValueError(f"timing {timing!r} needs a CUDA device; the CPU has host")
    return _device_cold if timing == "device-cold" else _device_hot


@cache
def overhead_s() -> float:
    """Return the seconds that two readings of the clock take."""
    readings = []
    for _ in range(1000):
        start = perf_counter()
        readings.append(perf_counter() - start)
    return max(sorted(readings)[len(readings) // 2], 1e-9)


def host_s(call: Call) -> float:
    """Return the host's seconds for submitting one call to an idle CUDA device."""
    times = []
    for _ in range(SUBMISSIONS):
        synchronize()
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    synchronize()
    return sorted(times)[SUBMISSIONS // 2]


def late_s(call: Call) -> float:
    """Return the seconds for which a CUDA device goes on with a call after all of the current stream's work is done.

    It is work on another stream, which CUDA events on the current one don't see. The least of several calls counts.
    """
    least_s = math.inf
    for _ in range(SUBMISSIONS):
        end = torch.cuda.Event()
        synchronize()
        call()
        end.record()
        end.synchronize()
        start = perf_counter()
        synchronize()
        least_s = min(least_s, perf_counter() - start)
    return least_s


def _host(call: Call, calls: int, results: list[object] | None = None) -> float:
    start = perf_counter()
    held = [call() for _ in repeat(None, calls)]
    return _with_results((perf_counter() - start) / calls, held, results)


def _host_synchronised(call: Call, calls: int, results: list[object] | None = None) -> float:
    synchronize()
    start = perf_counter()
    held = [call() for _ in repeat(None, calls)]
    synchronize()
    return _with_results((perf_counter() - start) / calls, held, results)


def _device_hot(call: Call, calls: int, results: list[object] | None = None) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    synchronize()
    start.record()
    held = [call() for _ in repeat(None, calls)]
    end.record()
    end.synchronize()
    return _with_results(float(start.elapsed_time(end)) / 1e3 / calls, held, results)


def _device_cold(call: Call, calls: int, results: list[object] | None = None) -> float:
    """Return the mean seconds of calls that each start with L2 overwritten, which is not part of the time."""
    held: list[object] = []
    buffer = _l2_buffer(torch.cuda.current_device())
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(calls)]
    synchronize()
    for start, end in events:
        buffer.zero_()
        start.record()
        held.append(call())
        end.record()
    synchronize()
    call_s = float(sum(start.elapsed_time(end) for start, end in events)) / 1e3 / calls
    return _with_results(call_s, held, results)


def _with_results(call_s: float, held: list[object], results: list[object] | None) -> float:
    """Return the seconds of a call, and append the results to the list, if one is given."""
    if results is not None:
        results += held
    return call_s


@cache
def _l2_buffer(device: int) -> torch.Tensor:
    size = torch.cuda.get_device_properties(device).L2_cache_size * L2_FACTOR
    with torch.inference_mode(False):  # it is kept for later points, which may have gradients
        return torch.empty(size, dtype=torch.int8, device=f"cuda:{device}")
