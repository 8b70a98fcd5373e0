"""The environment variables with which a process starts: allocator, threads, folders of modules."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.machine import facts
from bench.plan.case import RETAINED
from bench.plan.device import CPU, Kind
from bench.plan.invocation import IS_INSTALLED, ROOT

KEEPS = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(16 << 30)}
HUGE_PAGES = {"THP_MEM_ALLOC_ENABLE": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

ALLOCATOR_VARIABLES: dict[str, dict[str, str]] = {
    RETAINED: KEEPS if facts.huge_pages_missing() else KEEPS | HUGE_PAGES,
    "system": {},
}
"""The environment variables that glibc and torch read at the start of a process. `retained` never returns freed memory,
so no page faults twice; it also requests huge pages, from torch for large blocks and from glibc for the others."""

FORK_VARIABLES = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES"}
"""The environment variables that allow forking after torch is imported. With the first, torch looks for GPUs without
using one. Without the second, macOS kills a forked process that begins to use an Objective-C framework.
"""

STILL_VARIABLES = {"GOMP_SPINCOUNT": "20000", "KMP_BLOCKTIME": "1", "OPENBLAS_THREAD_TIMEOUT": "17"}
"""The environment variables that let threads sleep soon after a call, for GNU's and Intel's OpenMP and for NumPy's
OpenBLAS, because spinning threads would slow the process that is sampled next. 20,000 turns, or 2 to the power of 17
ticks, take less than 0.1 ms, so threads still spin within a call. A user's own settings stay."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""The environment variables with the number of threads, for OpenMP and MKL."""


def environment(
    allocator: str,
    threads: int,
    cache: Path,
    python: str | None = None,
    paths: Sequence[str] = (),
    kind: Kind = CPU,
) -> dict[str, str]:
    """Return the environment variables of a process for a kind of device; `python` is another environment's.

    The process looks for modules in `paths` first. The user's own allocator settings are removed.
    """
    ours = {name for variables in ALLOCATOR_VARIABLES.values() for name in variables}
    inherited = {name: value for name, value in os.environ.items() if name not in ours and name[:7] != "MALLOC_"}
    settings = ALLOCATOR_VARIABLES[allocator]
    tunables = [
        each for each in os.environ.get("GLIBC_TUNABLES", "").split(":") if not each.startswith("glibc.malloc.")
    ]
    tunables = [each for each in [*tunables, settings.get("GLIBC_TUNABLES")] if each]
    return {
        **FORK_VARIABLES,
        **STILL_VARIABLES,
        **inherited,
        **settings,
        **({"GLIBC_TUNABLES": ":".join(tunables)} if tunables else {}),
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        "PYTHONPATH": os.pathsep.join([*paths, *_path(python)]),
        "PYTHONUNBUFFERED": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        **kind.variables,
    }


def _path(python: str | None) -> list[str]:
    """Return the folders that a worker searches first: sys.path, but no installed packages for another `python`."""
    if python is None:
        return list(dict.fromkeys([str(Path.cwd()), *(entry for entry in sys.path if entry)]))
    entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    suite = [] if IS_INSTALLED else [str(ROOT)]
    return list(dict.fromkeys([str(Path.cwd()), *suite, *entries]))
