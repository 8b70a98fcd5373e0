"""Calls of one case, in turns without the profiler and under it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from torch.profiler import ProfilerActivity, profile, record_function

from bench.measure import clock

WARM_CALLS = 3
"""Calls before all others: the first one compiles, the others fill caches."""

PAIRS, LEAST_PAIRS = 15, 3
"""A case has so many pairs of calls where they are short, and no fewer where they are long."""

BUDGET_S = 3.0
"""After this no further pair begins."""


@dataclass(frozen=True)
class Pair:
    """The seconds of a call without the profiler, and of the one after it, with what was recorded of that."""

    timed_s: float
    profiled_s: float
    profiler: profile


@dataclass(frozen=True)
class Capture:
    """All pairs of one case; `label` is the name under which a profiler shows the call."""

    label: str
    pairs: tuple[Pair, ...]

    @property
    def timed_s(self) -> float:
        """The median of the calls without the profiler."""
        return median(pair.timed_s for pair in self.pairs)

    @property
    def profiled_s(self) -> float:
        """The median of the calls under the profiler."""
        return median(pair.profiled_s for pair in self.pairs)

    @property
    def middle(self) -> Sequence[Pair]:
        """The pairs without the fastest and slowest quarter of the profiled calls, fastest first.

        Their means stay together with the medians where a noisy machine delays a call now and then.
        """
        ordered = sorted(self.pairs, key=lambda pair: pair.profiled_s)
        quarter = (len(ordered) + 1) // 4
        return ordered[quarter : len(ordered) - quarter]

    @property
    def kept(self) -> Pair:
        """The pair whose profiled call stands for all: the median."""
        return self.middle[len(self.middle) // 2]


def take(call: clock.Call, label: str, device: str, timing: str) -> Capture:
    """Return pairs of calls, after a warm-up that holds both kinds of call."""
    timer = clock.timer(device, timing)
    for _ in range(WARM_CALLS):
        call()
    _pair(call, label, device, timer)
    pairs: list[Pair] = []
    deadline = time.monotonic() + BUDGET_S
    while len(pairs) < LEAST_PAIRS or (len(pairs) < PAIRS and time.monotonic() < deadline):
        pairs.append(_pair(call, label, device, timer))
    return Capture(label, tuple(pairs))


def _pair(call: clock.Call, label: str, device: str, timer: clock.Timer) -> Pair:
    call()  # what the last profile left in the memory makes the next call fault pages in, and it would be the timed one
    timed_s = timer(call, 1)
    results: list[object] = []

    def labelled() -> None:
        with record_function(label):
            results.append(call())  # held until the profile ends, so that what outlives the call is seen to

    with profile(activities=activities(device), record_shapes=True, profile_memory=True, with_flops=True) as profiler:
        profiled_s = timer(labelled, 1)
    return Pair(timed_s, profiled_s, profiler)


def activities(device: str) -> list[ProfilerActivity]:
    """Return what a profiler looks at where a case runs on this device."""
    return [ProfilerActivity.CPU] if device == "cpu" else [ProfilerActivity.CPU, ProfilerActivity.CUDA]
