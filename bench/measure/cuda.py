"""CUDA: the timers of a GPU, work that is late, and the memory of a call.

A GPU works on what the host queues. Events around a call that the host has yet to queue measure the host: on an H200
the same layer, twice, was seen to differ by half. So a timing begins with a hold, a kernel that keeps the GPU busy
until all calls and their events are queued: then no time of the host is between two events. That is proven each time.

All of torch that reads the time is bound here before any implementation is imported, so that a patch has no effect.
"""

import gc
import math
import statistics
from collections.abc import Callable, Sequence
from functools import cache
from itertools import repeat
from time import perf_counter

import torch
from torch.cuda import Event, current_device, synchronize

from bench.measure.clock import Call, Timer, Timing, Void, prepare, timed
from bench.plan.device import HOST, HOT
from impls.contract import Unsupported

_sleep: Callable[[int], None] = torch.cuda._sleep
_record: Callable[[Event], None] = Event.record
_query: Callable[[Event], bool] = Event.query
_elapsed_ms: Callable[[Event, Event], float] = Event.elapsed_time
_wait: Callable[[Event], None] = Event.synchronize

LEAST_HOLD_S, MOST_HOLD_S, HOLD_FACTOR = 2e-4, 0.5, 3.0
"""A hold takes HOLD_FACTOR times what the host needed before, within these limits."""

MOST_CALLS = 16
"""The most calls behind one hold. About a thousand launches fit into a stream; then the host waits for the GPU."""

MOST_VOID = 8
"""After so many void timings in a row, a call is known to wait for the GPU."""

CALIBRATED_CYCLES = 1_000_000
"""The cycles of a hold that is timed, because clocks differ and change: about half a millisecond."""

WAKING_S = 0.05
"""A GPU that was idle has a low clock; it works for so long before the first hold of a process is calibrated."""

EMPTY_PAIRS, LOOKS = 15, 7
"""The pairs of events with nothing between them that are timed, and the looks for late work."""

L2_FACTOR = 2
"""The size of the buffer in units of L2; writing it removes all data of the last call from L2."""


def timer(timing: str) -> Timer:
    """Return the timer of a way to time a call."""
    return _ByHost() if timing == HOST else _BehindHold(is_cold=timing != HOT)


class _ByHost:
    """Times calls by the wall clock until the GPU has done them: what a user waits for."""

    most_calls = math.inf
    late_s = 0.0

    def hold(self, _before: Call, /) -> None:
        """Do nothing: a user's GPU isn't kept busy."""

    def __call__(self, call: Call, calls: int, results: list[object] | None = None) -> Timing:
        """Return the seconds per call, and those until it was queued."""
        prepare(call, calls)
        synchronize()
        start = perf_counter()
        held = [call() for _ in repeat(None, calls)]
        queued_s = perf_counter() - start
        synchronize()
        call_s = (perf_counter() - start) / calls
        if results is not None:
            results += held
        return Timing(call_s, queued_s / calls)


class _BehindHold:
    """Times calls by events behind a hold: all of them together, or each cold one after L2 was overwritten.

    Whoever queues more than the calls, as the writing of their inputs, calls `hold` before: then work on another stream
    that doesn't wait for it finds old inputs. The length of a hold follows from what the host needed before.
    """

    def __init__(self, *, is_cold: bool, hold_s: float = LEAST_HOLD_S) -> None:
        self.most_calls: float = MOST_CALLS
        self._is_cold = is_cold
        self._hold_s = max(LEAST_HOLD_S, hold_s)
        self._void = 0
        self._cycles_per_s = 0.0
        self._begin_s: float | None = None
        self._lates_s: list[float] = []

    @property
    def late_s(self) -> float:
        """The seconds for which the GPU goes on after the calls of most timings, on other streams."""
        return _low(self._lates_s)

    def hold(self, before: Call, /) -> None:
        """Keep the GPU busy, once it has done what is `before`, for as long as the host is expected to need."""
        before()
        synchronize()
        self._cycles_per_s = self._cycles_per_s or _cycles_per_s()
        self._begin_s = perf_counter()
        _sleep(math.ceil(self._hold_s * self._cycles_per_s))

    def __call__(self, call: Call, calls: int, results: list[object] | None = None) -> Timing:
        """Return the GPU's and the host's seconds per call; raises Void, or Unsupported for a call that waits."""
        gpu_s, host_s, left = 0.0, 0.0, calls
        while left:
            size = int(min(left, self.most_calls))
            of_gpu_s, of_host_s = self._behind_one(call, size, results)
            gpu_s, host_s, left = gpu_s + of_gpu_s, host_s + of_host_s, left - size
        return Timing(gpu_s / calls, host_s / calls)

    def _behind_one(self, call: Call, calls: int, results: list[object] | None) -> tuple[float, float]:
        """Return the GPU's and the host's seconds of calls behind one hold."""
        if self._begin_s is None:
            self.hold(_nothing)
        begin_s, self._begin_s = self._begin_s or 0.0, None
        # bound before the calls: what they patch for a moment has no effect
        record, query, wait, wait_for_all, elapsed_ms = _record, _query, _wait, synchronize, _elapsed_ms
        held: list[object] = []
        sizes = [1] * calls if self._is_cold else [calls]
        events = [(Event(enable_timing=True), Event(enable_timing=True)) for _ in sizes]
        last = Event()
        hosts_s = [self._queued(call, size, held, record, *pair) for size, pair in zip(sizes, events, strict=True)]
        is_void = query(events[0][0])
        queued_s = perf_counter() - begin_s
        record(last)
        wait(last)
        ended_s = perf_counter()
        wait_for_all()
        late_s = perf_counter() - ended_s
        if is_void:
            self._lengthen(calls, queued_s)
            raise Void
        self._void, self._hold_s = 0, max(LEAST_HOLD_S, min(self._hold_s, HOLD_FACTOR * queued_s))
        self._lates_s.append(late_s)
        if results is not None:
            results += held
        return sum(elapsed_ms(*pair) / 1e3 for pair in events), sum(hosts_s)

    def _queued(
        self, call: Call, calls: int, held: list[object], record: Callable[[Event], None], start: Event, end: Event
    ) -> float:
        """Queue calls between two events, and return the host's seconds for the calls."""
        prepare(call, calls)
        getattr(call, "renew", _nothing)()
        if self._is_cold:
            _l2_buffer(current_device()).zero_()
        record(start)
        begin_s = perf_counter()
        results = [call() for _ in repeat(None, calls)]
        host_s = perf_counter() - begin_s
        record(end)
        held += map(getattr(call, "keep", _same), results)
        return host_s

    def _lengthen(self, calls: int, queued_s: float) -> None:
        """Let the next hold be longer, or have fewer calls; raises Unsupported if that has not helped."""
        self._void, self._cycles_per_s = self._void + 1, 0.0  # the clock may have risen since it was measured
        if self._void > MOST_VOID:
            raise Unsupported(
                "events can't time a call that waits for the GPU or queues more than a stream holds: the host needed "
                f"{queued_s:.2g} s, and the hold was {self._hold_s:.2g} s; use --timing host"
            )
        if self._void > 1 and calls > 1:
            self.most_calls = calls // 2
        else:
            self._hold_s = min(MOST_HOLD_S, max(2 * self._hold_s, HOLD_FACTOR * queued_s))


def _cycles_per_s() -> float:
    """Return the cycles of a hold in a second, at the clock of now."""
    _wake(current_device())
    start, end = Event(enable_timing=True), Event(enable_timing=True)
    _sleep(CALIBRATED_CYCLES)  # the GPU works on it until the next one is queued
    _record(start)
    _sleep(CALIBRATED_CYCLES)
    _record(end)
    _wait(end)
    return CALIBRATED_CYCLES / max(_elapsed_ms(start, end) / 1e3, 1e-9)


@cache
def _wake(_device: int) -> None:
    """Let the current device work, once in a process, until its clock has risen."""
    begin_s = perf_counter()
    while perf_counter() - begin_s < WAKING_S:
        _sleep(CALIBRATED_CYCLES)
        synchronize()


def event_s() -> float:
    """Return the seconds that two events with nothing between them show: they are part of each timing."""
    timer = _BehindHold(is_cold=False)
    return statistics.median(timed(timer, _nothing).call_s for _ in range(EMPTY_PAIRS))


def _nothing() -> None:
    pass


def _same(result: object) -> object:
    return result


def late_s(call: Call, calls: int, in_timings_s: float = 0.0) -> float:
    """Return the seconds for which a GPU goes on with some calls after all of the current stream's work is done.

    It is work on another stream, which events on the current one don't see: that of three looks in four, or what was
    seen in timings, beyond that of calls that do nothing. It adds up with the calls, and the delays of the host don't:
    12 to 45 µs were seen after honest calls on an H200. A hold keeps the GPU from being done before the host looks.
    """
    host_s = timed(_BehindHold(is_cold=False), call).host_s or 0.0
    return max(0.0, max(_late_s(call, calls, host_s), in_timings_s) - _late_s(_nothing, calls, 0.0))


def _low(values: Sequence[float]) -> float:
    """Return the lowest quartile: what is above it may be the host's delay; 0 without values."""
    return sorted(values)[len(values) // 4] if values else 0.0


def _late_s(call: Call, calls: int, host_s: float) -> float:
    """Return the late work of some calls behind a hold that is long enough for the host's seconds of each."""
    timer, lates_s = _BehindHold(is_cold=False, hold_s=HOLD_FACTOR * calls * host_s), list[float]()
    for _ in range(LOOKS):
        end = Event()
        prepare(call, calls)
        timer.hold(_nothing)
        for _ in repeat(None, calls):
            call()
        _record(end)
        _wait(end)
        start = perf_counter()
        synchronize()
        lates_s.append(perf_counter() - start)
    return _low(lates_s)


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
            "the peak memory is unknown, because torch's caching allocator counts no tensors on the GPU; "
            "unset PYTORCH_NO_CUDA_MEMORY_CACHING if it is set"
        )
    call()
    synchronize(device)
    peak = torch.cuda.max_memory_allocated(device) - held
    return peak, max(0, torch.cuda.max_memory_reserved(device) - reserved)
