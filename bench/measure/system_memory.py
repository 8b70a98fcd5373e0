"""The memory of this process as the operating system sees it: a call's peak, and the part in huge pages.

The peak checks the allocator's figure. It is valid in a process that returns freed memory at once
(`MALLOC_MMAP_THRESHOLD_=65536`, `MALLOC_TRIM_THRESHOLD_=65536`). Timing needs the opposite, so this has a separate
process.
"""

import ctypes
import gc
import sys
from collections.abc import Callable
from pathlib import Path

import torch

import impls
from bench.measure import workload
from bench.plan.case import Case

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")
MAPPINGS = Path("/proc/self/smaps_rollup")

RESET_PEAK = "5"
"""Writing this to clear_refs resets VmHWM (proc(5))."""


def of_case(case: Case) -> int | None:
    """Return the peak of one call of a case on the CPU in bytes; None if it can't run or the system gives no peak."""
    if not CLEAR_REFS.exists():
        return None
    try:
        workload.set_up(case.point)
        work = workload.make(case.point)
        subject = workload.subject(work, case.implementation)
        call = workload.step(subject, work)
        with work.gradient_mode():
            if isinstance(subject.function, impls.Runtime):
                subject.function.build(work.x)
                return peak_bytes(call, with_first=subject.function.has_own_memory)
            return peak_bytes(call)
    except Exception:  # the case's row already has the reason
        return None


def peak_bytes(call: Callable[[], object], *, with_first: bool = False) -> int:
    """Return the largest increase of the process's resident memory in bytes during the second of two calls.

    The first call allocates what is kept for later calls, such as a library's scratch. For a runtime that keeps all
    memory of its calls the increase is counted `with_first`.
    """
    if not with_first:
        call()
    gc.collect()
    held = _kib(STATUS, "VmRSS")
    CLEAR_REFS.write_text(RESET_PEAK)
    call()
    if with_first:
        call()
    return (_kib(STATUS, "VmHWM") - held) * 1024


def give_back() -> None:
    """Release freed memory to the system and the GPU, even if the allocator is configured to retain it."""
    gc.collect()
    torch.cuda.empty_cache()  # no effect if no GPU was used
    if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)


def huge_bytes() -> int | None:
    """Return the bytes of this process in transparent huge pages; None if the system doesn't tell."""
    return _kib(MAPPINGS, "AnonHugePages") * 1024 if MAPPINGS.exists() else None


def _kib(file: Path, field: str) -> int:
    line = next(line for line in file.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1])
