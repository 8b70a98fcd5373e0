"""Calls of one case, first plain and then under torch.profiler."""

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import wraps
from statistics import mean

from torch.profiler import profile, record_function

from bench.machine import monotonic
from bench.machine.quiet import WINDOW_S, Interference
from bench.measure import clock
from bench.measure.devices import Device
from bench.measure.recorded import Call, recorded
from bench.store.record import Samples

WARM_CALLS = 3
"""The calls before all others: the first one compiles, the others fill caches."""

CALLS, LEAST_CALLS, BUDGET_S = 15, 3, 3.0
"""The most and the least calls of a profile; in between, as many as plain calls fit into BUDGET_S seconds."""


@dataclass(frozen=True)
class Capture:
    """The calls of one case under the profiler.

    `samples` has the calls without the profiler, `profiled_s` is the mean seconds of a call with it.
    """

    calls: Sequence[Call]
    profiler: profile
    samples: Samples
    profiled_s: float


def capture(call: clock.Call, label: str, on: Device, timing: str, threads: int) -> Capture:
    """Make plain calls, then as many under the profiler; `label` names each in the trace."""

    @wraps(call)  # keeps the attribute `prepare` of a backward pass
    def labelled() -> object:
        with record_function(label):
            return call()

    for _ in range(WARM_CALLS):
        call()
    _profiled(labelled, on, timing, 1)
    timer, timed_s, switches, others = on.timer(timing), list[float](), list[int](), list[float]()
    interference, begin_s = Interference(threads, time.process_time), monotonic.now_s()
    while monotonic.now_s() < begin_s + WINDOW_S:  # so that the load beside the first call is known
        clock.timed(timer, call)
    while len(timed_s) < LEAST_CALLS or (len(timed_s) < CALLS and sum(timed_s) < BUDGET_S):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        timed_s.append(clock.timed(timer, call).call_s)
        switches.append(resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before)
        others.append(interference.share())
    samples = Samples(tuple(range(len(timed_s))), tuple((each,) for each in timed_s), tuple(switches), tuple(others))
    profiler, profiled_s = _profiled(labelled, on, timing, len(timed_s))
    return Capture(recorded(profiler, label), profiler, samples, mean(profiled_s))


def _profiled(call: clock.Call, on: Device, timing: str, calls: int) -> tuple[profile, list[float]]:
    """Return a profile of calls, and their seconds."""
    timer = on.timer(timing)  # separate, because the host needs longer under a profiler
    with profile(activities=on.activities, record_shapes=True) as profiler:
        return profiler, [clock.timed(timer, call).call_s for _ in range(calls)]
