"""Calls of one case, in turns without the profiler and under it."""

import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import psutil
from torch.profiler import ProfilerActivity, profile, record_function

from bench.measure import clock, heap
from bench.profiling.blocks import allocated
from bench.profiling.pairs import FEW_FAULTS, Capture, Pair, calm
from bench.profiling.recorded import recorded

Value = TypeVar("Value")

WARM_CALLS = 3
"""Calls before all others: the first one compiles, the others fill caches."""

PAIRS, LEAST_PAIRS = 15, 3
"""A case has so many pairs of calls where they are short, and no fewer where they are long."""

BUDGET_S = 3.0
"""After this no further pair begins."""

MOST_PAIRS = 9
"""Where calls are long, so many pairs are made to find the least number that are calm."""

SETTLING_CALLS = 4
"""At most so many calls are made before a timed one, until one faults hardly any page in."""

GROWTH_BYTES = 2**30
"""What moved leaves its old place behind: after so much growth what is free goes back to the system."""


def take(call: clock.Call, label: str, device: str, timing: str, folder: Path) -> Capture:
    """Return pairs of calls, which stand under this label in their traces; the traces go into the folder.

    A warm-up holds both kinds of call. Pairs that are not calm are left out unless there is no other.
    """
    timer = clock.timer(device, timing)
    for _ in range(WARM_CALLS):
        call()
    _pair(call, label, device, timer, folder / "warm-up.json")
    pairs: list[Pair] = []
    held_bytes, deadline = _resident_bytes(), time.monotonic() + BUDGET_S
    while _goes_on(pairs, deadline):
        if _resident_bytes() > held_bytes + GROWTH_BYTES:
            heap.give_back()
        pairs.append(_pair(call, label, device, timer, folder / f"{len(pairs)}.json"))
    return Capture(tuple(calm(pairs) or pairs))


def _goes_on(pairs: Sequence[Pair], deadline: float) -> bool:
    found = len(calm(pairs))
    return found < PAIRS if time.monotonic() < deadline else found < LEAST_PAIRS and len(pairs) < MOST_PAIRS


def _pair(call: clock.Call, label: str, device: str, timer: clock.Timer, trace: Path) -> Pair:
    _settle(call)
    results: list[object] = []

    def labelled() -> None:
        with record_function(label):
            results.append(call())  # held until the profile ends, so that what outlives the call is seen to

    timed_s, timed_faults = _with_faults(lambda: timer(call, 1))
    with profile(activities=activities(device), record_shapes=True, profile_memory=True, with_flops=True) as profiler:
        profiled_s, profiled_faults = _with_faults(lambda: timer(labelled, 1))
    profiler.export_chrome_trace(str(trace))
    found = recorded(profiler, label)
    faults = timed_faults, profiled_faults
    return Pair(timed_s, profiled_s, faults, found, allocated(profiler, found, device), trace)


def _settle(call: clock.Call) -> None:
    """Make calls until one faults no page in: a profile leaves gaps in memory, and what is too large for them moves.

    The first call after a profile was seen to take from a quarter longer to four times as long.
    """
    for _ in range(SETTLING_CALLS):
        _, faults = _with_faults(call)
        if faults <= FEW_FAULTS:
            return


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _with_faults(action: Callable[[], Value]) -> tuple[Value, int]:
    """Return what an action returns, and how many pages it faulted in."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    value = action()
    return value, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def activities(device: str) -> list[ProfilerActivity]:
    """Return what a profiler looks at where a case runs on this device."""
    return [ProfilerActivity.CPU] if device == "cpu" else [ProfilerActivity.CPU, ProfilerActivity.CUDA]
