"""The operating system's view of a call's peak memory, as a cross-check of the allocator's.

It holds in a process that gives freed memory back at once (`MALLOC_MMAP_THRESHOLD_=65536`,
`MALLOC_TRIM_THRESHOLD_=65536`), which is the opposite of what timing needs: so it has a process of its own.
"""

import gc
from collections.abc import Callable
from pathlib import Path

from bench.measure import compilation, workload
from bench.plan.case import Case

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")

RESET_PEAK = "5"
"""What resets VmHWM when it is written to clear_refs (proc(5))."""


def of_case(case: Case) -> int | None:
    """Return the peak of one call of a case on the CPU in bytes; None where it can't run or the system doesn't tell."""
    if not CLEAR_REFS.exists():
        return None
    compilation.reset()
    try:
        workload.set_up(case.point)
        work = workload.make(case.point)
        call = workload.step(workload.subject(work, case.implementation), work)
        with work.context():
            return peak_bytes(call)
    except Exception:  # why it can't run stands in the case's row already
        return None


def peak_bytes(call: Callable[[], object]) -> int:
    """Return by how many bytes the process's resident memory rose at most during the second of two calls.

    The first call leaves behind what is kept for the next, such as a library's scratch.
    """
    call()
    gc.collect()
    held = _kib("VmRSS")
    CLEAR_REFS.write_text(RESET_PEAK)
    call()
    return (_kib("VmHWM") - held) * 1024


def _kib(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1])
