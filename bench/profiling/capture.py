"""Calls of one case, in turns without the profiler and under it."""

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TypeVar

from torch.profiler import ProfilerActivity, profile, record_function

from bench.measure import clock
from bench.profiling.blocks import Allocated, allocated
from bench.profiling.recorded import Call, recorded

Value = TypeVar("Value")

WARM_CALLS = 3
"""Calls before all others: the first one compiles, the others fill caches."""

PAIRS, LEAST_PAIRS = 15, 3
"""A case has so many pairs of calls where they are short, and no fewer where they are long."""

BUDGET_S = 3.0
"""After this no further pair begins."""

SETTLING_CALLS, FEW_FAULTS = 4, 50
"""At most so many calls are made before a timed one, until one faults in no more pages than any call may."""


@dataclass(frozen=True)
class Pair:
    """The seconds of a call without the profiler and of the one after it, and what was recorded of that.

    `trace` is the file of its Chrome trace, as torch wrote it.
    """

    timed_s: float
    profiled_s: float
    call: Call
    blocks: tuple[Allocated, ...]
    trace: Path


@dataclass(frozen=True)
class Capture:
    """All pairs of calls of one case.

    Means are taken over the middle half of the calls: like medians they pass over those that a noisy machine delayed,
    and yet those of a call's parts add up to that of the call.
    """

    pairs: tuple[Pair, ...]

    @property
    def timed_s(self) -> float:
        """The mean of the middle half of the calls without the profiler."""
        return mean(_middle(sorted(pair.timed_s for pair in self.pairs)))

    @property
    def profiled_s(self) -> float:
        """The mean of the middle half of the calls under the profiler."""
        return mean(pair.profiled_s for pair in self.middle)

    @property
    def middle(self) -> Sequence[Pair]:
        """The middle half of the profiled calls, fastest first."""
        return _middle(sorted(self.pairs, key=lambda pair: pair.profiled_s))

    @property
    def kept(self) -> Pair:
        """The pair whose profiled call stands for all: the median."""
        return self.middle[len(self.middle) // 2]


def take(call: clock.Call, label: str, device: str, timing: str, folder: Path) -> Capture:
    """Return pairs of calls, which stand under this label in their traces; the traces go into the folder.

    A warm-up holds both kinds of call.
    """
    timer = clock.timer(device, timing)
    for _ in range(WARM_CALLS):
        call()
    pairs = [_pair(call, label, device, timer, folder / "warm-up.json")]
    deadline = time.monotonic() + BUDGET_S
    while len(pairs) <= LEAST_PAIRS or (len(pairs) <= PAIRS and time.monotonic() < deadline):
        pairs.append(_pair(call, label, device, timer, folder / f"{len(pairs)}.json"))
    return Capture(tuple(pairs[1:]))


def _pair(call: clock.Call, label: str, device: str, timer: clock.Timer, trace: Path) -> Pair:
    _settle(call)
    timed_s = timer(call, 1)
    results: list[object] = []

    def labelled() -> None:
        with record_function(label):
            results.append(call())  # held until the profile ends, so that what outlives the call is seen to

    with profile(activities=activities(device), record_shapes=True, profile_memory=True, with_flops=True) as profiler:
        profiled_s = timer(labelled, 1)
    profiler.export_chrome_trace(str(trace))
    found = recorded(profiler, label)
    return Pair(timed_s, profiled_s, found, allocated(profiler, found, device), trace)


def _middle(ordered: Sequence[Value]) -> Sequence[Value]:
    """Return a sequence without its first and last quarter; of three calls the second remains."""
    quarter = (len(ordered) + 1) // 4
    return ordered[quarter : len(ordered) - quarter]


def _settle(call: clock.Call) -> None:
    """Make calls until one faults no page in: a profile leaves gaps in memory, and what is too large for them moves.

    The first call after a profile was seen to take a quarter longer than others, and several times as long where
    profiles were kept.
    """
    for _ in range(SETTLING_CALLS):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        call()
        if resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before <= FEW_FAULTS:
            return


def activities(device: str) -> list[ProfilerActivity]:
    """Return what a profiler looks at where a case runs on this device."""
    return [ProfilerActivity.CPU] if device == "cpu" else [ProfilerActivity.CPU, ProfilerActivity.CUDA]
