"""The clock: seconds per call of one timing, by wall or by CUDA events.

What reads the time is bound here, before any implementation is imported, so that a patched clock changes nothing.
"""

from collections.abc import Callable
from functools import cache
from itertools import repeat
from time import perf_counter

import torch
from torch.cuda import synchronize

Call = Callable[[], object]
Timer = Callable[[Call, int], float]
"""`timer(call, calls)` returns the seconds per call of so many calls in a row."""

SUBMISSIONS = 15
"""So many calls are submitted one by one to learn what the median of them costs the host."""

L2_FACTOR = 2
"""A buffer of so many times the size of L2 leaves nothing of the last call in it."""


def timer(device: str, timing: str) -> Timer:
    """Return the timer of a device and a timing mode.

    Raises ValueError for a mode that the device doesn't have.
    """
    if timing == "host":
        return _host if device == "cpu" else _host_synchronised
    if device == "cpu":
        raise ValueError(f"timing {timing!r} needs a CUDA device; the CPU has host")
    return _device_cold if timing == "device-cold" else _device_hot


@cache
def overhead_s() -> float:
    """Return what reading the clock twice costs, in seconds."""
    readings = []
    for _ in range(1000):
        start = perf_counter()
        readings.append(perf_counter() - start)
    return max(sorted(readings)[len(readings) // 2], 1e-9)


def host_s(call: Call) -> float:
    """Return what one call costs the host that submits it to an idle CUDA device, in seconds."""
    times = []
    for _ in range(SUBMISSIONS):
        synchronize()
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    synchronize()
    return sorted(times)[SUBMISSIONS // 2]


def _host(call: Call, calls: int) -> float:
    start = perf_counter()
    for _ in repeat(None, calls):
        call()
    return (perf_counter() - start) / calls


def _host_synchronised(call: Call, calls: int) -> float:
    synchronize()
    start = perf_counter()
    for _ in repeat(None, calls):
        call()
    synchronize()
    return (perf_counter() - start) / calls


def _device_hot(call: Call, calls: int) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    synchronize()
    start.record()
    for _ in repeat(None, calls):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / calls


def _device_cold(call: Call, calls: int) -> float:
    """Average over calls of which each starts with L2 overwritten, outside the timed span."""
    buffer = _l2_buffer(torch.cuda.current_device())
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(calls)]
    synchronize()
    for start, end in events:
        buffer.zero_()
        start.record()
        call()
        end.record()
    synchronize()
    return float(sum(start.elapsed_time(end) for start, end in events)) / 1e3 / calls


@cache
def _l2_buffer(device: int) -> torch.Tensor:
    size = torch.cuda.get_device_properties(device).L2_cache_size * L2_FACTOR
    with torch.inference_mode(False):  # it is kept for later points, which may have gradients
        return torch.empty(size, dtype=torch.int8, device=f"cuda:{device}")
