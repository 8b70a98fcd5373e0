"""Calls of one case, alternately without and with the profiler, and the means of their seconds."""

import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TypeVar

import psutil
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import profile, record_function

from bench.analyse.summary import FLAGGED_PER_S
from bench.machine.quiet import Others
from bench.measure import clock, memory
from bench.measure.devices import Device
from bench.measure.recorded import Call, allocated, recorded

Value = TypeVar("Value")

WARM_CALLS = 3
"""Calls before all others: the first one compiles, the others fill caches."""

PAIRS, LEAST_PAIRS = 15, 3
"""The numbers of comparable pairs to make: within BUDGET_S, and after it (if MOST_PAIRS contain that many)."""

BUDGET_S = 3.0
"""After this time LEAST_PAIRS comparable pairs suffice."""

MOST_PAIRS = 9
"""The most pairs that are made after BUDGET_S to get LEAST_PAIRS comparable ones."""

SETTLING_CALLS = 4
"""The most calls that are made before a timed one, until one has at most FEW_FAULTS page faults."""

GROWTH_BYTES = 2**30
"""Free memory is returned to the system after the process has grown by this much, because reallocation leaves gaps."""

FEW_FAULTS = 50
"""The noise of page faults: any call may have this many."""

SIMILAR = 0.1
"""The largest relative difference between the page faults of two calls in the same state of memory."""


@dataclass(frozen=True)
class Pair:
    """A call without the profiler and the next one with it: their seconds, and the recording of the second.

    `faults` are the page faults of both calls, `switches` the involuntary context switches in both; `allocated` has the
    bytes that each event of the call allocated.
    """

    timed_s: float
    profiled_s: float
    faults: tuple[int, int]
    switches: int
    call: Call
    allocated: Counter[FunctionEvent]
    profiler: profile

    @property
    def is_comparable(self) -> bool:
        """Whether both calls had about as many page faults, so memory was in the same state, and ran undisturbed."""
        is_disturbed = self.switches > FLAGGED_PER_S * (self.timed_s + self.profiled_s)
        return not is_disturbed and abs(self.faults[0] - self.faults[1]) <= max(FEW_FAULTS, SIMILAR * max(self.faults))


@dataclass(frozen=True)
class Capture:
    """All pairs of calls of one case, and the number of cores that other processes used meanwhile.

    Means are taken over the middle half of the calls: like medians they ignore delayed calls, and the means of a call's
    parts add up to that of the call.
    """

    pairs: tuple[Pair, ...]
    others_cores: float = 0.0

    @property
    def timed_s(self) -> float:
        """The mean seconds of the middle half of the calls without the profiler."""
        return mean(_middle_half(sorted(pair.timed_s for pair in self.pairs)))

    @property
    def profiled_s(self) -> float:
        """The mean seconds of the middle half of the calls with the profiler."""
        return mean(pair.profiled_s for pair in self.middle_half)

    @property
    def middle_half(self) -> Sequence[Pair]:
        """The middle half of the profiled calls, fastest first."""
        return _middle_half(sorted(self.pairs, key=lambda pair: pair.profiled_s))

    @property
    def median(self) -> Pair:
        """The pair with the median profiled call, which represents all in the trace and in the order of kernels."""
        return self.middle_half[len(self.middle_half) // 2]


def capture(call: clock.Call, label: str, on: Device, timing: str) -> Capture:
    """Return pairs of calls; `label` names the call in the traces.

    The warm-up makes both kinds of call. Pairs that are not comparable are left out, unless none is comparable.
    """
    timers = on.timer(timing), on.timer(timing)  # with a profiler the host needs longer
    for _ in range(WARM_CALLS):
        call()
    _pair(call, label, on, timers)
    pairs: list[Pair] = []
    held_bytes, deadline, others = _resident_bytes(), time.monotonic() + BUDGET_S, Others(time.process_time)
    while _needs_more(pairs, deadline):
        if _resident_bytes() > held_bytes + GROWTH_BYTES:
            memory.give_back()
        pairs.append(_pair(call, label, on, timers))
    return Capture(tuple(pair for pair in pairs if pair.is_comparable) or tuple(pairs), others.cores())


def _needs_more(pairs: Sequence[Pair], deadline: float) -> bool:
    comparable = sum(pair.is_comparable for pair in pairs)
    return comparable < PAIRS if time.monotonic() < deadline else comparable < LEAST_PAIRS and len(pairs) < MOST_PAIRS


def _pair(call: clock.Call, label: str, on: Device, timers: tuple[clock.Timer, clock.Timer]) -> Pair:
    _settle(call)
    results: list[object] = []

    def labelled() -> None:
        with record_function(label):
            results.append(call())  # held until the profile ends, so that no block of the result is freed in the call

    clock.prepare(call, 1)
    timed_s, timed_faults, timed_switches = _counted(lambda: clock.timed(timers[0], call).call_s)
    while True:  # a void timing is repeated with a profile of its own: a label stands for one call
        results.clear()
        clock.prepare(call, 1)
        with profile(activities=on.activities, record_shapes=True, profile_memory=True) as profiler:
            try:
                profiled_s, profiled_faults, profiled_switches = _counted(lambda: timers[1](labelled, 1).call_s)
            except clock.Void:
                continue
        break
    profiled_call = recorded(profiler, label)
    sizes = allocated(profiler, profiled_call, on.kind)
    faults, switches = (timed_faults, profiled_faults), timed_switches + profiled_switches
    return Pair(timed_s, profiled_s, faults, switches, profiled_call, sizes, profiler)


def _settle(call: clock.Call) -> None:
    """Make calls until one has few page faults: a profile leaves gaps in memory, and larger blocks need new pages.

    The first call after a profile took 1.25 to 4 times as long.
    """
    for _ in range(SETTLING_CALLS):
        _, faults, _ = _counted(call)
        if faults <= FEW_FAULTS:
            return


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _counted(action: Callable[[], Value]) -> tuple[Value, int, int]:
    """Return an action's result, and the numbers of its page faults and of its involuntary context switches."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    value = action()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return value, after.ru_minflt - before.ru_minflt, after.ru_nivcsw - before.ru_nivcsw


def _middle_half(ordered: Sequence[Value]) -> Sequence[Value]:
    """Return a sequence without its first and last quarter; of three values only the second."""
    quarter = (len(ordered) + 1) // 4
    return ordered[quarter : len(ordered) - quarter]
