"""Calls of one case, first plain and then under torch.profiler."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import wraps
from statistics import mean

from torch.profiler import profile, record_function

from bench.machine.quiet import Others
from bench.measure import clock
from bench.measure.devices import Device
from bench.measure.recorded import Call, recorded

WARM_CALLS = 3
"""The calls before all others: the first one compiles, the others fill caches."""

CALLS, LEAST_CALLS, BUDGET_S = 15, 3, 3.0
"""The most and the least calls of a profile; in between, as many as plain calls fit into BUDGET_S seconds."""


@dataclass(frozen=True)
class Capture:
    """The calls of one case under the profiler.

    `timed_s` and `profiled_s` are the mean seconds of a call without and with the profiler. Meanwhile other processes
    used `others_cores` cores.
    """

    calls: Sequence[Call]
    profiler: profile
    timed_s: float
    profiled_s: float
    others_cores: float


def capture(call: clock.Call, label: str, on: Device, timing: str) -> Capture:
    """Make plain calls, then as many under the profiler; `label` names each in the trace."""

    @wraps(call)  # keeps the attribute `prepare` of a backward pass
    def labelled() -> object:
        with record_function(label):
            return call()

    for _ in range(WARM_CALLS):
        call()
    _profiled(labelled, on, timing, 1)
    timer, others, timed_s = on.timer(timing), Others(time.process_time), list[float]()
    while len(timed_s) < LEAST_CALLS or (len(timed_s) < CALLS and sum(timed_s) < BUDGET_S):
        timed_s.append(clock.timed(timer, call).call_s)
    profiler, profiled_s = _profiled(labelled, on, timing, len(timed_s))
    return Capture(recorded(profiler, label), profiler, mean(timed_s), mean(profiled_s), others.cores())


def _profiled(call: clock.Call, on: Device, timing: str, calls: int) -> tuple[profile, list[float]]:
    """Return a profile of calls, and their seconds."""
    timer = on.timer(timing)  # separate, because the host needs longer under a profiler
    with profile(activities=on.activities, record_shapes=True) as profiler:
        return profiler, [clock.timed(timer, call).call_s for _ in range(calls)]
