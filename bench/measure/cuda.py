"""CUDA: the timers of a GPU, the host's time for a call, work that is late, and the memory of a call.

The functions that read the time are bound here before any implementation is imported, so a patched clock has no effect.
"""

import gc
import math
from functools import cache
from itertools import repeat
from time import perf_counter

import torch
from torch.cuda import synchronize

from bench.measure.clock import Call, HoldingTimer, prepare, with_results
from bench.plan.device import COLD, HOT

SUBMISSIONS = 15
"""The number of calls that are submitted one by one: for the median of the host's time, and for the least late work."""

L2_FACTOR = 2
"""The size of the buffer in units of L2; writing it removes all data of the last call from L2."""


def timer(timing: str) -> HoldingTimer:
    """Return the timer of a way to time a call."""
    return {COLD: _device_cold, HOT: _device_hot}.get(timing, _host_synchronised)


def host_s(call: Call) -> float:
    """Return the host's seconds for submitting one call to an idle CUDA device."""
    times = []
    for _ in range(SUBMISSIONS):
        prepare(call, 1)
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
        prepare(call, 1)
        synchronize()
        call()
        end.record()
        end.synchronize()
        start = perf_counter()
        synchronize()
        least_s = min(least_s, perf_counter() - start)
    return least_s


def _host_synchronised(call: Call, calls: int, results: list[object] | None = None) -> float:
    prepare(call, calls)
    synchronize()
    start = perf_counter()
    held = [call() for _ in repeat(None, calls)]
    synchronize()
    return with_results((perf_counter() - start) / calls, held, results)


def _device_hot(call: Call, calls: int, results: list[object] | None = None) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    prepare(call, calls)
    synchronize()
    start.record()
    held = [call() for _ in repeat(None, calls)]
    end.record()
    end.synchronize()
    return with_results(float(start.elapsed_time(end)) / 1e3 / calls, held, results)


def _device_cold(call: Call, calls: int, results: list[object] | None = None) -> float:
    """Return the mean seconds of calls that each start with L2 overwritten, which is not part of the time."""
    held: list[object] = []
    buffer = _l2_buffer(torch.cuda.current_device())
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(calls)]
    prepare(call, calls)
    synchronize()
    for start, end in events:
        buffer.zero_()
        start.record()
        held.append(call())
        end.record()
    synchronize()
    call_s = float(sum(start.elapsed_time(end) for start, end in events)) / 1e3 / calls
    return with_results(call_s, held, results)


@cache
def _l2_buffer(device: int) -> torch.Tensor:
    size = torch.cuda.get_device_properties(device).L2_cache_size * L2_FACTOR
    with torch.inference_mode(False):  # it is kept for later points, which may have gradients
        return torch.empty(size, dtype=torch.int8, device=f"cuda:{device}")


def peak_bytes(call: Call, device: str) -> tuple[int, int]:
    """Return the bytes that one call on a GPU needs at its peak, and those that its caching allocator reserves for it.

    They come on top of what was held before, and are counted after the allocator's cache was emptied. The call must
    have run before: the first one makes plans and workspaces that stay.
    Raises RuntimeError if the allocator counts nothing, not even the inputs.
    """
    prepare(call, 1)
    gc.collect()
    synchronize(device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    held, reserved = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    if not held:
        raise RuntimeError(
            "the peak memory is unknown: torch's caching allocator counts none of the tensors on the GPU, "
            "as with PYTORCH_NO_CUDA_MEMORY_CACHING=1"
        )
    call()
    synchronize(device)
    peak = torch.cuda.max_memory_allocated(device) - held
    return peak, max(0, torch.cuda.max_memory_reserved(device) - reserved)
