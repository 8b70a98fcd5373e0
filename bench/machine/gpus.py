"""The NVIDIA GPUs of this machine as NVML sees them, without torch: what each is, and who else uses it."""

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import psutil

from bench.machine import facts
from bench.plan.device import numbered
from bench.store import units

MODES = {0: "DEFAULT", 1: "EXCLUSIVE_THREAD", 2: "PROHIBITED", 3: "EXCLUSIVE_PROCESS"}
"""NVML's compute modes. Source: NVML API reference, nvmlComputeMode_t."""

BUSY = 0.05
"""The share of the latest time in which a GPU was at work, above which somebody uses it."""


@dataclass(frozen=True)
class Gpu:
    """What NVML says of a GPU at this moment; what it doesn't say is None.

    `load` is the share of the latest time, up to a second, in which a kernel ran. `processes` are the numbers of all
    processes that compute on it; in a container they may be those of the host, or none.
    """

    device: str
    name: str
    memory_bytes: int | None
    free_bytes: int | None
    driver: str | None
    mode: str | None
    is_split: bool | None
    load: float | None
    processes: tuple[int, ...]

    @property
    def words(self) -> str:
        """What it is, in a few words."""
        known = (
            (self.memory_bytes, f"{units.size(self.memory_bytes)}, {units.size(self.free_bytes)} free"),
            (self.driver, f"driver {self.driver}"),
            (self.mode, f"compute mode {self.mode}"),
            (self.is_split, "split by MIG"),
        )
        return ", ".join([self.name, *(words for is_known, words in known if is_known)])

    @property
    def others(self) -> tuple[int, ...]:
        """The processes on it that are neither this one nor started by it."""
        return tuple(sorted({*self.processes} - {os.getpid()} - facts.descendants()))


def seen() -> list[Gpu]:
    """Return the GPUs that a process may use, in their order; none without NVML's package or a driver."""
    return [_gpu(f"cuda:{number}", handle) for number, handle in enumerate(facts.gpu_handles())]


def _gpu(device: str, handle: Any) -> Gpu:
    memory = facts.ask_nvml(lambda nvml: nvml.nvmlDeviceGetMemoryInfo(handle))
    load = facts.ask_nvml(lambda nvml: nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    mode = facts.ask_nvml(lambda nvml: nvml.nvmlDeviceGetComputeMode(handle))
    split = facts.ask_nvml(lambda nvml: nvml.nvmlDeviceGetMigMode(handle)[0])
    running = facts.ask_nvml(lambda nvml: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return Gpu(
        device,
        name=str(facts.ask_nvml(lambda nvml: nvml.nvmlDeviceGetName(handle))),
        memory_bytes=memory and memory.total,
        free_bytes=memory and memory.free,
        driver=facts.ask_nvml(lambda nvml: str(nvml.nvmlSystemGetDriverVersion())),
        mode=None if mode is None else MODES.get(mode, str(mode)),
        is_split=None if split is None else bool(split),
        load=None if load is None else load / 100,
        processes=tuple(process.pid for process in running or ()),
    )


def warnings(devices: Collection[str]) -> list[str]:
    """Return a warning for each of these devices that somebody else uses, before a run starts its own processes."""
    return [f"{gpu.device} ({gpu.name}) {words}" for gpu in _of(devices) if (words := in_use(gpu))]


def late_warnings(devices: Collection[str]) -> list[str]:
    """Return a warning for each of these devices that another process uses at the end of a run.

    A process that isn't seen here may be one of the run's own in a container, so it doesn't count.
    """
    return [
        f"{gpu.device} ({gpu.name}) is used by another process now ({_listed(others)}): "
        "times that it took part in are longer"
        for gpu in _of(devices)
        if (others := [pid for pid in gpu.others if psutil.pid_exists(pid)])
    ]


def in_use(gpu: Gpu) -> str:
    """Return in words who else uses a GPU, and what to do; empty if nobody is seen."""
    if gpu.others:
        who = f"is used by {'another process' if len(gpu.others) == 1 else f'{len(gpu.others)} other processes'}"
        return f"{who} ({_listed(gpu.others)}): end it, or choose another GPU by CUDA_VISIBLE_DEVICES"
    if (gpu.load or 0.0) > BUSY and not gpu.processes:
        return f"was at work {units.percent(gpu.load)} of the time, for a process that isn't seen here: wait for it"
    return ""


def _of(devices: Iterable[str]) -> list[Gpu]:
    wanted = {numbered(device) for device in devices}
    return [gpu for gpu in seen() if gpu.device in wanted]


def _listed(pids: Iterable[int]) -> str:
    return f"pid {', '.join(map(str, pids))}"
