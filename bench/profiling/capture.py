"""Calls of one case, alternately without and with the profiler."""

import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import psutil
from torch.profiler import ProfilerActivity, profile, record_function

from bench.measure import clock, system_memory
from bench.profiling.blocks import allocated
from bench.profiling.pairs import FEW_FAULTS, Capture, Pair
from bench.profiling.recorded import recorded

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


def capture(call: clock.Call, label: str, device: str, timing: str, folder: Path) -> Capture:
    """Return pairs of calls; `label` names the call in the traces, which are written into the folder.

    The warm-up makes both kinds of call. Pairs that are not comparable are left out, unless none is comparable.
    """
    timer = clock.timer(device, timing)
    for _ in range(WARM_CALLS):
        call()
    _pair(call, label, device, timer, folder / "warm-up.json")
    pairs: list[Pair] = []
    held_bytes, deadline = _resident_bytes(), time.monotonic() + BUDGET_S
    while _needs_more(pairs, deadline):
        if _resident_bytes() > held_bytes + GROWTH_BYTES:
            system_memory.give_back()
        pairs.append(_pair(call, label, device, timer, folder / f"{len(pairs)}.json"))
    return Capture(tuple(pair for pair in pairs if pair.is_comparable) or tuple(pairs))


def _needs_more(pairs: Sequence[Pair], deadline: float) -> bool:
    comparable = sum(pair.is_comparable for pair in pairs)
    return comparable < PAIRS if time.monotonic() < deadline else comparable < LEAST_PAIRS and len(pairs) < MOST_PAIRS


def _pair(call: clock.Call, label: str, device: str, timer: clock.Timer, trace: Path) -> Pair:
    _settle(call)
    results: list[object] = []

    def labelled() -> None:
        with record_function(label):
            results.append(call())  # held until the profile ends, so that no block of the result is freed in the call

    timed_s, timed_faults = _with_faults(lambda: timer(call, 1))
    with profile(activities=activities(device), record_shapes=True, profile_memory=True, with_flops=True) as profiler:
        profiled_s, profiled_faults = _with_faults(lambda: timer(labelled, 1))
    profiler.export_chrome_trace(str(trace))
    profiled_call = recorded(profiler, label)
    faults = timed_faults, profiled_faults
    return Pair(timed_s, profiled_s, faults, profiled_call, allocated(profiler, profiled_call, device), trace)


def _settle(call: clock.Call) -> None:
    """Make calls until one has few page faults: a profile leaves gaps in memory, and larger blocks need new pages.

    The first call after a profile took 1.25 to 4 times as long.
    """
    for _ in range(SETTLING_CALLS):
        _, faults = _with_faults(call)
        if faults <= FEW_FAULTS:
            return


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _with_faults(action: Callable[[], Value]) -> tuple[Value, int]:
    """Return an action's result and the number of its page faults."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    value = action()
    return value, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def activities(device: str) -> list[ProfilerActivity]:
    """Return the activities that a profiler must record for a case on this device."""
    return [ProfilerActivity.CPU] if device == "cpu" else [ProfilerActivity.CPU, ProfilerActivity.CUDA]
