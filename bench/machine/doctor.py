"""Whether this machine is ready to measure: one finding for each thing that matters, with what to do about it."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from bench.machine import facts, gpus, quiet
from bench.machine.gpus import MODES
from bench.store import units

LEAST_DISK_BYTES, LEAST_MEMORY_BYTES = 2 * 2**30, 2 * 2**30
"""Below these a run may fail: the compiler's cache and a journal of a large sweep, and the layers with their scores."""

LEAST_TORCH = (2, 11)

COMPILERS = ("c++", "g++", "clang++")

GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
"""The file with the rule by which Linux sets the clock of a core."""

READY, MIND, BAD = "ready", "mind", "not ready"


@dataclass(frozen=True)
class Finding:
    """What was found of one thing: in words what is there, and what to do; empty if nothing is to do."""

    name: str
    words: str
    advice: str = ""
    is_bad: bool = False

    @property
    def state(self) -> str:
        """READY if nothing is to do; else BAD if nothing can be measured before that, and MIND if something can."""
        return BAD if self.is_bad else MIND if self.advice else READY


def findings(folder: Path) -> list[Finding]:
    """Return what matters for measuring on this machine; results would go into a folder."""
    return [
        _torch(), *_torchvision(), _cores(), *_variables(), _allocator(), _compiler(), *_gpus(), *_noise(), _memory(),
        _disk(folder), *_clock(),
    ]  # fmt: skip


def _torch() -> Finding:
    version = facts.torch_version()
    words = f"Python {platform.python_version()}, torch {version or 'is not installed'}"
    if not version:
        return Finding("versions", words, "install torch: docs/gpu.md says how", is_bad=True)
    parts = tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())
    is_old = parts < LEAST_TORCH
    newer = f"install torch {'.'.join(map(str, LEAST_TORCH))} or newer" if is_old else ""
    return Finding("versions", words, newer, is_bad=is_old)


def _torchvision() -> Iterator[Finding]:
    """Yield whether torchvision can be imported beside this torch, if it is installed: timm and models need it."""
    try:
        version = metadata.version("torchvision")
    except metadata.PackageNotFoundError:
        return
    done = subprocess.run([sys.executable, "-c", "import torchvision"], capture_output=True, text=True, check=False)
    last = "".join(done.stderr.splitlines()[-1:])
    words = f"torchvision {version}" + (f" can't be imported: {last}" if done.returncode else " fits torch")
    yield Finding(
        "torchvision", words, "install the one of this torch: docs/gpu.md says how" if done.returncode else ""
    )


def _cores() -> Finding:
    cores, logical, threads = facts.physical_cores(), facts.visible_cores(), facts.default_threads()
    physical = "1 physical core" if cores == 1 else f"{cores} physical cores"
    words = f"{facts.cpu_model()}, {physical}, {logical} logical; a run uses {threads} of them"
    only = "other work takes the only core from what is measured: expect wide intervals"
    return Finding("cores", words, only if cores == 1 else "")


def _variables() -> Iterator[Finding]:
    others = [name for name in (*facts.WAIT_POLICY_VARIABLES, "LD_PRELOAD") if os.environ.get(name)]
    if names := [*others, *facts.variables()]:
        words = f"set in the environment: {', '.join(names)}"
        yield Finding("variables", words, "unset them, unless you mean to measure with them")


def _allocator() -> Finding:
    if reason := facts.huge_pages_missing():
        words = f"freed memory is retained in ordinary pages: {reason}"
        return Finding("memory pages", words, "fine; processes differ a little more than with huge pages")
    return Finding("memory pages", "freed memory is retained, in huge pages")


def _compiler() -> Finding:
    named = os.environ.get("CXX")
    path = next(filter(None, map(shutil.which, (named,) if named else COMPILERS)), None)
    if path is None:
        words = f"CXX is {named}, which is not there" if named else f"none of {', '.join(COMPILERS)}"
        return Finding("compiler", words, "install g++: without it compiled implementations are unsupported")
    return Finding("compiler", Path(path).name)


def _gpus() -> Iterator[Finding]:
    """Yield what is known of each GPU, and who else uses it."""
    every, cuda = gpus.seen(), facts.torch_cuda()
    if not every:
        yield Finding("GPU", "none is seen: runs use the CPU")
    for gpu in every:
        name = "GPU" if len(every) == 1 else gpu.device
        if not cuda:
            yield Finding(name, f"{gpu.words}, but this torch has no CUDA", "install a torch with CUDA: docs/gpu.md")
            continue
        told, _, advice = gpus.in_use(gpu).partition(": ")
        if gpu.mode not in (None, MODES[0]):
            advice = f"several processes must share it: nvidia-smi --id={gpu.device[5:]} --compute-mode=DEFAULT"
        yield Finding(name, "; ".join(filter(None, (gpu.words, f"torch is built for CUDA {cuda}", told))), advice)


def _noise() -> Iterator[Finding]:
    state = quiet.watch()
    warnings = quiet.warnings(state, facts.default_threads(), facts.physical_cores())
    for warning in warnings:
        words, _, advice = warning.partition(": ")
        yield Finding("noise now", words, advice)
    if not warnings:
        yield Finding("noise now", f"quiet: other processes use {state.others_cores:.1f} cores")


def _memory() -> Finding:
    free_bytes = facts.available_bytes()
    close = "close other programs: large points are skipped if they don't fit"
    return Finding("memory", f"{units.size(free_bytes)} free", close if free_bytes < LEAST_MEMORY_BYTES else "")


def _disk(folder: Path) -> Finding:
    at = next(path for path in (folder, *folder.resolve().parents) if path.exists())
    if not os.access(at, os.W_OK):
        return Finding("disk", f"{at.name or at} can't be written", "choose another folder with --run DIR", is_bad=True)
    free_bytes = shutil.disk_usage(at).free
    free = "free some: a full disk ends a run, which can be gone on with"
    words = f"{units.size(free_bytes)} free for results"
    return Finding("disk", words, free if free_bytes < LEAST_DISK_BYTES else "")


def _clock() -> Iterator[Finding]:
    try:
        governor = GOVERNOR.read_text(encoding="utf-8").strip()
    except OSError:
        return
    if governor == "performance":
        yield Finding("clock", "held high by the governor performance")
    else:
        yield Finding("clock", f"changes with the load: the governor is {governor}",
            "cpupower frequency-set -g performance, or take more --processes")  # fmt: skip
