"""The facts of this machine, without torch: its cores, processor, memory and torch."""

import contextlib
import hashlib
import importlib.util
import os
import platform
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from bench.machine import git
from bench.plan.sweep import Request
from bench.store.environment import VARIABLES, Environment

CONTROL_GROUPS = Path("/sys/fs/cgroup")

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
"""The file with the system's modes of transparent huge pages; the current mode is in brackets."""

SETTING = re.compile(
    r"((PY)?TORCH[A-Z]*|TRITON|ATEN|ONEDNN|DNNL|MKL|OMP|KMP|GOMP|OPENBLAS|BLIS|VECLIB|CUDA|CUDNN|CUBLAS[A-Z]*|NVIDIA_TF32"
    r"|XLA|JAX|ORT|OV|GLIBC|MIMALLOC|TCMALLOC)_"
)
"""Prefixes of environment variables that change how torch, its compilers and other runtimes compute."""

NO_SETTING = re.compile(
    r"_(CACHE|DIR|DIRECTORY|HOME|PATH|ROOT|FILE|LOGS?|VERBOSE|VERSION|URL|HOST|TOKEN|KEY|SECRET|PASSWORD|VISIBLE)(_|$)"
    r"|^(OMP|MKL)_NUM_THREADS$"
)
"""Names among them that hold paths, log settings or secrets, or that workers set themselves."""

FOLDERS = re.compile(r"[^\s:;,=]*/")

WAIT_POLICY_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_PROC_BIND", "OMP_PLACES")


def observe(torch_facts: dict[str, Any], plan: dict[str, Any], preflight: dict[str, Any]) -> Environment:
    """Return this machine's environment, with a worker's `torch_facts` and the `preflight` check.

    `plan` becomes part of the context.
    """
    identity = {**of_machine(), "python": platform.python_version(), **_of_process(), **torch_facts}
    state = {"load_1min": os.getloadavg()[0], "available_bytes": available_bytes(), "preflight": preflight}
    context = {
        "host": socket.gethostname(),
        "kernel": platform.release(),
        "commit": git.of_suite(),
        "half_precision": half_precision(),
        "command": [_without_folders(word) for word in sys.argv],
        **plan,
    }
    return Environment(identity, state, context)


def of_machine() -> dict[str, Any]:
    """Return the facts of the machine's identity that don't depend on this process or on torch."""
    return {
        "cpu": cpu_model(),
        "cpu_flags": cpu_flags(),
        "cores": visible_cores(),
        "physical_cores": physical_cores(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": platform.system(),
        "machine": platform.machine(),
    }


def _of_process() -> dict[str, Any]:
    """Return the facts of the machine's identity that depend on this process's environment variables."""
    preloaded = [Path(word).name for word in os.environ.get("LD_PRELOAD", "").replace(":", " ").split()]
    return {
        "wait_policy": {name: os.environ[name] for name in WAIT_POLICY_VARIABLES if name in os.environ},
        **({VARIABLES: settings} if (settings := variables()) else {}),
        **({"preloaded": preloaded} if preloaded else {}),
    }


def variables() -> dict[str, str]:
    """Return the environment variables that change computation, except the wait policy; values have no folders."""
    return {
        name: FOLDERS.sub("", value)
        for name, value in sorted(os.environ.items())
        if SETTING.match(name) and not NO_SETTING.search(name) and name not in WAIT_POLICY_VARIABLES
    }


def here(sweep: str = "", **asked: Any) -> Request:
    """Return a request with this machine's threads and CPU flags."""
    return Request(sweep, threads=default_threads(), cpu=cpu_features(), **asked)


def _without_folders(word: str) -> str:
    """Return a word of the command line, with an absolute path cut to its last part because results are published."""
    option, equals, value = word.rpartition("=")
    return f"{option}{equals}{Path(value).name}" if Path(value).is_absolute() else word


def visible_cores() -> int:
    """Return the logical cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def physical_cores() -> int:
    """Return the physical cores that this process may use."""
    return min(psutil.cpu_count(logical=False) or 1, visible_cores())


def available_bytes() -> int:
    """Return the bytes of memory available without swapping and within the limits of control groups.

    Source of the files: Linux, Documentation/admin-guide/cgroup-v2.rst.
    """
    left_bytes = [int(psutil.virtual_memory().available)]
    for folder in _control_groups():
        with contextlib.suppress(OSError, ValueError):  # "max" is no limit
            limit, used = ((folder / name).read_text() for name in ("memory.max", "memory.current"))
            left_bytes.append(max(0, int(limit) - int(used) + _cached_bytes(folder)))
    return min(left_bytes)


def _cached_bytes(group: Path) -> int:
    """Return the bytes of inactive file cache in a control group, which the system frees when needed."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        pairs = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        return int(dict(pairs)["inactive_file"])
    return 0


def huge_pages_missing() -> str:
    """Return the reason why processes can't have transparent huge pages here, empty if they can request them.

    Small pages have other physical addresses in each process, which changes the time of a call. Over ten replicates of
    four points, the standard deviation of log ratios between processes, beyond the variation of rounds, was 4.0 % with
    small pages and 2.2 % with huge ones.
    """
    if platform.system() != "Linux":
        return f"the system is {platform.system()}, not Linux"
    if platform.libc_ver()[0] != "glibc":
        return "the C library is not glibc"
    try:
        modes = HUGE_PAGES.read_text()
    except OSError:
        return f"the system has none, because {HUGE_PAGES} can't be read"
    return f"they are switched off: {HUGE_PAGES} says [never]" if "[never]" in modes else ""


def _control_groups() -> Iterator[Path]:
    """Yield the folders of this process's control group and its parents."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                group = CONTROL_GROUPS / line.removeprefix("0::/")
                yield group
                yield from (parent for parent in group.parents if parent.is_relative_to(CONTROL_GROUPS))


def default_threads() -> int:
    """Return the physical cores minus one, at least 1, so that one core stays free for other processes."""
    return max(1, physical_cores() - 1)


def busy_s() -> float:
    """Return the busy seconds since boot, summed over the visible cores, with time that the host took."""
    by_core = psutil.cpu_times(percpu=True)
    visible = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(by_core))
    # psutil leaves out offline cores, so a core's index in its list may differ from its number
    seen = [times for core, times in enumerate(by_core) if core in visible] or by_core
    kinds = ("user", "system", "nice", "steal")
    return float(sum(getattr(times, kind, 0.0) for times in seen for kind in kinds))


def cpu_model() -> str:
    """Return the CPU's model name."""
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def cpu_features() -> frozenset[str]:
    """Return the CPU's instruction flags; empty if the system doesn't list them."""
    return frozenset(_cpuinfo().get("flags", "").split())


def cpu_flags() -> str:
    """Return a short hash of the CPU's instruction flags; empty if the system doesn't list them."""
    flags = " ".join(sorted(cpu_features()))
    return hashlib.sha256(flags.encode()).hexdigest()[:12] if flags else ""


def half_precision() -> str:
    """Return the CPU's instructions for bfloat16 and float16: `avx512_bf16, no amx_bf16, …`; empty if unknown."""
    flags, names = cpu_features(), ("avx512_bf16", "amx_bf16", "avx512_fp16", "amx_fp16")
    return ", ".join(name if name in flags else f"no {name}" for name in names) if flags else ""


def _cpuinfo() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def torch_version() -> str:
    """Return the version of the installed torch; empty if there is none."""
    return _declared("__version__")


def torch_cuda() -> str:
    """Return the CUDA version for which the installed torch was built; empty without CUDA."""
    return _declared("cuda")


def torch_hip() -> str:
    """Return the HIP version, for AMD's GPUs, for which the installed torch was built; empty without HIP."""
    return _declared("hip")


def _declared(name: str) -> str:
    """Return the value of a name in torch's version file, without importing torch; empty if it has none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return ""
    try:
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(rf"^{name}\b[^=\n]*= *'([^']*)'", text, re.MULTILINE)
    return match[1] if match else ""
