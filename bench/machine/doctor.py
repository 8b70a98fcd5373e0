"""Whether this machine is ready to measure: one finding for each thing that matters, with what to do about it."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from bench.machine import facts, gpus, quiet
from bench.machine.gpus import MODES

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


def findings() -> list[Finding]:
    """Return what matters for measuring on this machine."""
    logical, threads, no_huge = facts.visible_cores(), facts.default_threads(), facts.huge_pages_missing()
    cores = f"{facts.cpu_model()}, {facts.physical_cores()} physical, {logical} logical; a run uses {threads} of them"
    pages = f"ordinary ones: {no_huge}; processes differ a little more than with huge pages" if no_huge else "huge ones"
    return [
        _torch(), *_torchvision(), Finding("cores", cores), *_variables(), Finding("memory pages", pages), _compiler(),
        *_gpus(), *_noise(), *_clock(),
    ]  # fmt: skip


def _torch() -> Finding:
    version = facts.torch_version()
    parts = tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())
    words = f"Python {platform.python_version()}, torch {version or 'is not installed'}"
    is_new = parts >= LEAST_TORCH
    least = ".".join(map(str, LEAST_TORCH))
    return Finding(
        "versions", words, "" if is_new else f"install torch {least} or newer: docs/gpu.md", is_bad=not is_new
    )


def _torchvision() -> Iterator[Finding]:
    """Yield whether torchvision can be imported beside this torch, if it is installed: timm and models need it."""
    with suppress(metadata.PackageNotFoundError):
        version = metadata.version("torchvision")
        done = subprocess.run([sys.executable, "-c", "import torchvision"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            yield Finding("torchvision", f"{version} fits torch")
            return
        last = "".join(done.stderr.splitlines()[-1:])
        yield Finding("torchvision", f"{version} can't be imported: {last}", "install that of this torch: docs/gpu.md")


def _variables() -> Iterator[Finding]:
    others = [name for name in (*facts.WAIT_POLICY_VARIABLES, "LD_PRELOAD") if os.environ.get(name)]
    if names := [*others, *facts.variables()]:
        words = f"set in the environment: {', '.join(names)}"
        yield Finding("variables", words, "unset them, unless you mean to measure with them")


def _compiler() -> Finding:
    wanted = [name] if (name := os.environ.get("CXX")) else COMPILERS
    if path := next(filter(None, map(shutil.which, wanted)), None):
        return Finding("compiler", Path(path).name)
    words = f"there is no {' or '.join(wanted)}"
    return Finding("compiler", words, "install g++: without it compiled implementations are unsupported")


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
    for words, _, advice in (warning.partition(": ") for warning in warnings):
        yield Finding("noise now", words, advice)
    if not warnings:
        yield Finding("noise now", f"quiet, other processes use {state.others_cores:.1f} cores")


def _clock() -> Iterator[Finding]:
    with suppress(OSError):
        governor = GOVERNOR.read_text(encoding="utf-8").strip()
        steady = "cpupower frequency-set -g performance, or take more --processes"
        yield Finding("clock", f"the governor is {governor}", "" if governor == "performance" else steady)
