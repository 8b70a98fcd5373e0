"""The clock: seconds per call of one timing, and the warm-up. A GPU has timers of its own.

Clock functions are bound here before any implementation is imported, so patching them later has no effect.
"""

import math
from collections.abc import Callable
from itertools import repeat
from statistics import quantiles
from time import perf_counter
from typing import NamedTuple

Call = Callable[[], object]


class Timing(NamedTuple):
    """Seconds per call, and the host's seconds per call; the latter is None if the host does the work itself."""

    call_s: float
    host_s: float | None = None


class Void(Exception):  # noqa: N818 - it is no error: the timing is repeated
    """A timing is invalid and must be repeated."""


LEAST_TIMING_S = 1e-3
"""The least seconds of a timing; its two readings of the clock take 0.1 µs, or some µs on a slow virtual machine."""

SLOW_START = 2.0
"""A call before the warm-up doesn't count if it took more than this many times as long, because it made or compiled."""

WINDOWS = ((0.005, 5), (0.02, 3), (math.inf, 1))
"""Pairs of the longest seconds per call and the timings in a warm-up window. The first calls are made before it."""

WARM_QUARTILES, WARM_SPREAD = 0.05, 0.10
"""Two windows agree if their quartiles differ by less than 5 % and their spreads by less than 10 % of the median
(pyperf's warm-up test)."""

WARM_TIMINGS, WARM_S = 300, 5.0
"""The most timings and seconds of a warm-up. It ends even if no windows agree, but not before the second window."""


def prepare(call: Call, calls: int) -> None:
    """Let a call prepare for the next `calls` calls outside the timing, such as a backward pass's forward passes."""
    getattr(call, "prepare", _nothing)(calls)


def _nothing(_calls: int) -> None:
    pass


class Timer:
    """Times consecutive calls by the wall clock; the timer of a device with a queue overrides it.

    `wait` waits until the device has done its work; None if this process does the work itself.
    """

    most_calls: float = math.inf
    """The most calls of a timing."""

    def __init__(self, wait: Callable[[], object] | None = None) -> None:
        self._wait = wait

    @property
    def late_s(self) -> float:
        """The seconds for which the device usually keeps working after the calls of a timing."""
        return 0.0

    def hold(self, before: Call, /) -> None:
        """Call `before`, wait for its work, then keep the device busy until all calls are queued.

        Does nothing if the time includes the host.
        """

    def __call__(self, call: Call, calls: int, results: list[object] | None = None) -> Timing:
        """Return the seconds per call; raises Void if the timing must be repeated.

        The results of the calls are appended to a list, if one is given. All are held until the last call has ended, so
        that no call can tell which of them is judged.
        """
        prepare(call, calls)
        if self._wait is not None:
            self._wait()
        start = perf_counter()
        held = [call() for _ in repeat(None, calls)]
        call_s = host_s = (perf_counter() - start) / calls
        if self._wait is not None:
            self._wait()
            call_s = (perf_counter() - start) / calls
        if results is not None:
            results += held
        return Timing(call_s, None if self._wait is None else host_s)


host = Timer()
Timings = Callable[[Call, int], Timing]
"""A function that times a number of calls and repeats void timings."""


def timed(timer: Timer, call: Call, calls: int = 1) -> Timing:
    """Time calls, and repeat while the timing is void."""
    while True:
        try:
            return timer(call, calls)
        except Void:
            continue


class Pace(NamedTuple):
    """The result of the warm-up: the calls of a timing, the seconds of a call, and whether the warm-up settled."""

    calls: int
    call_s: float
    settled: bool


def warm_up(
    call: Call,
    timer: Timings,
    most_s: float = WARM_S,
    most_calls: Callable[[], float] = lambda: math.inf,
    earlier_s: float = math.inf,
) -> Pace:
    """Call until two consecutive windows of timings agree or `most_s` is over, and return the pace for the samples.

    A timing has at most `most_calls()` calls, which may decrease meanwhile. An earlier call of `earlier_s` seconds
    counts as a window if a window is one timing.
    """
    deadline = perf_counter() + min(most_s, WARM_S)
    calls, per_call_s = _calibrate(call, timer, most_calls)
    window = next(timings for longest_s, timings in WINDOWS if per_call_s <= longest_s)
    values = [per_call_s] if calls == 1 else []  # the calibration of a long call is already a timing
    if values and window == 1 and earlier_s <= SLOW_START * per_call_s:
        values.insert(0, earlier_s)
    while not (settled := _settled(values, window)) and len(values) < WARM_TIMINGS:
        if len(values) >= 2 * window and perf_counter() > deadline:
            break
        values.append(timer(call, calls).call_s)
    warm_s = min(values, default=per_call_s)
    return Pace(int(min(most_calls(), math.ceil(LEAST_TIMING_S / warm_s))), warm_s, settled)


def _calibrate(call: Call, timer: Timings, most_calls: Callable[[], float]) -> tuple[int, float]:
    calls = 1
    while True:
        per_call_s = timer(call, calls).call_s
        if per_call_s * calls >= LEAST_TIMING_S or calls >= most_calls():
            return calls, per_call_s
        calls = int(min(most_calls(), max(2 * calls, math.ceil(LEAST_TIMING_S / max(per_call_s, 1e-9)))))


def _settled(values: list[float], window: int) -> bool:
    """Return whether the last two windows agree."""
    if len(values) < 2 * window:
        return False
    before, after = _quartiles(values[-2 * window : -window]), _quartiles(values[-window:])
    spread_changed = abs((after[2] - after[0]) - (before[2] - before[0]))
    are_near = all(abs(now - earlier) <= WARM_QUARTILES * earlier for earlier, now in zip(before, after, strict=True))
    return are_near and spread_changed <= WARM_SPREAD * before[1]


def _quartiles(values: list[float]) -> list[float]:
    """Return the quartiles of at least one value, without numpy, whose first percentile takes 25 ms in each process."""
    return quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
