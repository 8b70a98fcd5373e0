"""CUDA: the timers of a GPU, the check for late work, and the memory of a call.

A GPU works on calls that the host has queued. If the GPU waits for the host, events around a call measure the host: on
an H200 two timings of one layer differed by half. So a timing begins with a hold, a kernel that keeps the GPU busy
until all calls and their events are queued. The timing is void if the hold ended earlier.

Torch's timing functions are bound here before any implementation is imported, so patching them later has no effect.
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
"""A hold takes HOLD_FACTOR times as long as the host needed in the last timing, within these limits."""

MOST_CALLS = 16
"""The most calls behind one hold. After about a thousand queued launches the host waits for the GPU."""

MOST_VOID = 8
"""The most void timings in a row; after more, the call is taken to wait for the GPU."""

CALIBRATED_CYCLES = 1_000_000
"""The cycles of the kernel, about half a millisecond, by which the current clock rate is measured."""

WAKING_S = 0.05
"""The seconds of work that raise an idle GPU's clock before a process calibrates its first hold."""

EMPTY_PAIRS, LOOKS = 15, 7
"""The timings of an empty pair of events, and the looks for late work."""

L2_FACTOR = 2
"""The size of the buffer whose writing evicts the last call's data from L2, in units of L2."""


def timer(timing: str) -> Timer:
    """Return the timer for a value of the column `timing`."""
    return Timer(synchronize) if timing == HOST else _BehindHold(is_cold=timing != HOT)


class _BehindHold(Timer):
    """Times calls by events behind a hold: all together, or if `is_cold` one by one, each after overwriting L2.

    Call `hold` before writing the inputs of the calls: work on another stream that doesn't wait for it
    then reads old inputs. The length of a hold follows from the host's time in the last timing.
    """

    def __init__(self, *, is_cold: bool, hold_s: float = LEAST_HOLD_S) -> None:
        super().__init__()
        self.most_calls = MOST_CALLS
        self._is_cold = is_cold
        self._hold_s = max(LEAST_HOLD_S, hold_s)
        self._void = 0
        self._cycles_per_s = 0.0
        self._begin_s: float | None = None
        self._lates_s: list[float] = []

    @property
    def late_s(self) -> float:
        """The seconds for which the GPU usually keeps working on other streams after the calls of a timing."""
        return _lower_quartile(self._lates_s)

    def hold(self, before: Call, /) -> None:
        """Call `before`, wait for its work, then keep the GPU busy for as long as the host is expected to need."""
        before()
        synchronize()
        self._cycles_per_s = self._cycles_per_s or _cycles_per_s()
        self._begin_s = perf_counter()
        _sleep(math.ceil(self._hold_s * self._cycles_per_s))

    def __call__(self, call: Call, calls: int, results: list[object] | None = None) -> Timing:
        """Return the GPU's and the host's seconds per call; raises Void, or Unsupported if a call waits for the GPU."""
        gpu_s, host_s, left = 0.0, 0.0, calls
        while left:
            size = int(min(left, self.most_calls))
            of_gpu_s, of_host_s = self._behind_one(call, size, results)
            gpu_s, host_s, left = gpu_s + of_gpu_s, host_s + of_host_s, left - size
        return Timing(gpu_s / calls, host_s / calls)

    def _behind_one(self, call: Call, calls: int, results: list[object] | None) -> tuple[float, float]:
        """Return the GPU's and the host's seconds for all calls behind one hold."""
        if self._begin_s is None:
            self.hold(_nothing)
        begin_s, self._begin_s = self._begin_s or 0.0, None
        # bound before the calls, so that a call's patches have no effect
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
        """Queue calls between two events, and return the host's seconds for them."""
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
        """Make the next hold longer, or put fewer calls behind it; raises Unsupported after MOST_VOID attempts."""
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
    """Return the cycles of a hold per second at the current clock rate."""
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
    """Let the current device work, once in a process, until its clock rate has risen."""
    begin_s = perf_counter()
    while perf_counter() - begin_s < WAKING_S:
        _sleep(CALIBRATED_CYCLES)
        synchronize()


def event_s() -> float:
    """Return the seconds between two events without work in between, which each timing includes."""
    timer = _BehindHold(is_cold=False)
    return statistics.median(timed(timer, _nothing).call_s for _ in range(EMPTY_PAIRS))


def _nothing() -> None:
    pass


def _same(result: object) -> object:
    return result


def late_s(call: Call, calls: int, in_timings_s: float = 0.0) -> float:
    """Return the seconds for which a GPU keeps working on some calls after the current stream has finished.

    Events on the current stream don't time work on other streams. The result is the lower quartile of LOOKS looks, or
    `in_timings_s` if larger, minus the same for calls that do nothing. Late work grows with the calls, the host's delay
    doesn't: it was 12 to 45 µs on an H200. A hold keeps the GPU from finishing before the host looks.
    """
    host_s = timed(_BehindHold(is_cold=False), call).host_s or 0.0
    return max(0.0, max(_late_s(call, calls, host_s), in_timings_s) - _late_s(_nothing, calls, 0.0))


def _lower_quartile(values: Sequence[float]) -> float:
    """Return the lower quartile, because larger values may be the host's delay; 0 without values."""
    return sorted(values)[len(values) // 4] if values else 0.0


def _late_s(call: Call, calls: int, host_s: float) -> float:
    """Return the seconds of late work of some calls, behind a hold long enough for `host_s` per call."""
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
    return _lower_quartile(lates_s)


@cache
def _l2_buffer(device: int) -> torch.Tensor:
    size = torch.cuda.get_device_properties(device).L2_cache_size * L2_FACTOR
    with torch.inference_mode(False):  # it is kept for later points, which may have gradients
        return torch.empty(size, dtype=torch.int8, device=f"cuda:{device}")


def peak_bytes(call: Call, device: str) -> int:
    """Return the peak bytes that one call on a GPU allocates, without bytes held before.

    The call must have run before, because the first call makes plans and workspaces that stay.
    Raises RuntimeError if the allocator counts nothing, not even the inputs.
    """
    prepare(call, 1)
    gc.collect()
    synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    held = torch.cuda.memory_allocated(device)
    if not held:
        raise RuntimeError(
            "the peak memory is unknown, because torch's caching allocator counts no tensors on the GPU; "
            "unset PYTORCH_NO_CUDA_MEMORY_CACHING if it is set"
        )
    call()
    synchronize(device)
    return torch.cuda.max_memory_allocated(device) - held
