"""What NVML says of the NVIDIA GPUs of this machine; each answer is empty without its package or a driver."""

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

from bench.plan.device import numbered
from bench.store import units

T = TypeVar("T")

EXCLUSIVE_PROCESS = 3
"""The compute mode in which one process holds a GPU alone. Source: NVML API reference, nvmlComputeMode_t."""

BUSY = 0.05
"""The share of the latest time in which a GPU was at work, above which another process uses it."""

THROTTLE_REASONS = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Bits of `nvmlClocksThrottleReasons` that slow a kernel; the bits for an idle GPU and a clock setting are left out.
Source: NVML API reference, group nvmlClocksEventReasons."""

READINGS: Mapping[str, Callable[[Any, Any], float]] = {
    "clock_hz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM) * 1e6,
    "power_w": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3,
    "temperature_c": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    "reasons": lambda nvml, gpu: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu),
}
"""What is read of a GPU's state, by a function of NVML and the GPU's handle; each takes 10 to 100 µs."""


def ask(question: Callable[[Any], T]) -> T | None:
    """Return NVML's answer to a question, None without its package or a driver, or if it has none."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return question(pynvml)
    except Exception:  # NVML's errors can't be named if the package is missing
        return None


def driver() -> str | None:
    """Return the version of the driver."""
    return ask(lambda nvml: str(nvml.nvmlSystemGetDriverVersion()))


def handle(uuid: str) -> Any:
    """Return NVML's handle of a GPU by the uuid that CUDA says: NVML's numbering ignores CUDA_VISIBLE_DEVICES."""
    return ask(lambda nvml: nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}"))


def is_exclusive(uuid: str) -> bool:
    """Return whether only one process at a time can use a GPU; False if NVML doesn't say."""
    if (Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")) / "control").exists():  # noqa: S108
        return False  # MPS lets processes share it
    return ask(lambda nvml: nvml.nvmlDeviceGetComputeMode(handle(uuid))) == EXCLUSIVE_PROCESS


def energy_j(uuid: str) -> float | None:
    """Return the joules that the board of a GPU has used since its driver was loaded; it moves in steps of 20 ms."""
    return ask(lambda nvml: float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle(uuid))) / 1e3)


class States:
    """The states of a GPU that were read one after the other."""

    def __init__(self, uuid: str) -> None:
        self._gpu = handle(uuid)
        self._read: dict[str, list[Any]] = defaultdict(list)

    def read(self) -> None:
        """Read the state of this moment, outside of timings and right after one: an idle GPU lowers its clock."""
        for name, reading in READINGS.items():
            value = ask(lambda nvml, reading=reading: reading(nvml, self._gpu))  # type: ignore[misc]
            self._read[name] += [] if value is None else [value]  # what one GPU doesn't say, another does

    @property
    def metrics(self) -> dict[str, Any]:
        """The range of the multiprocessors' clock, the highest power and temperature, and all that slowed the clock."""
        clocks_hz, powers_w, temperatures_c, all_bits = (self._read[name] for name in READINGS)
        return {
            "clock_low_hz": min(clocks_hz, default=None),
            "clock_high_hz": max(clocks_hz, default=None),
            "power_w": max(powers_w, default=None),
            "temperature_c": max(temperatures_c, default=None),
            "throttle": tuple(name for bit, name in THROTTLE_REASONS.items() if any(bits & bit for bits in all_bits)),
        }


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
    load: float | None
    processes: tuple[int, ...]

    @property
    def words(self) -> str:
        """What it is, in a few words."""
        if self.memory_bytes is None:
            return self.name
        return f"{self.name}, {units.size(self.memory_bytes)}, {units.size(self.free_bytes)} free"

    @property
    def others(self) -> tuple[int, ...]:
        """The processes on it that are neither this one nor started by it."""
        own = {each.pid for each in psutil.Process().children(recursive=True)}
        return tuple(sorted({*self.processes} - {os.getpid()} - own))

    @property
    def in_use(self) -> str:
        """Who else uses it, in words, and what to do; empty if nobody is seen."""
        if self.others:
            who = f"is used by {'another process' if len(self.others) == 1 else f'{len(self.others)} other processes'}"
            return f"{who} ({_listed(self.others)}); end it, or choose another GPU with CUDA_VISIBLE_DEVICES"
        if (self.load or 0.0) > BUSY and not self.processes:
            return (
                f"was busy {units.percent(self.load)} of the time with a process that isn't visible here; wait for it"
            )
        return ""


def gpus() -> list[Gpu]:
    """Return the GPUs that a process may use, in CUDA's order; none without NVML's package or a driver."""
    return [_gpu(f"cuda:{number}", handle) for number, handle in enumerate(ask(_visible) or [])]


def _visible(nvml: Any) -> list[Any]:
    every = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return every
    words = [word for word in map(str.strip, visible.split(",")) if word not in ("", "-1")]
    return [every[int(word)] if word.isdecimal() else nvml.nvmlDeviceGetHandleByUUID(word) for word in words]


def _gpu(device: str, handle: Any) -> Gpu:
    memory = ask(lambda nvml: nvml.nvmlDeviceGetMemoryInfo(handle))
    load = ask(lambda nvml: nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    running = ask(lambda nvml: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return Gpu(
        device,
        name=str(ask(lambda nvml: nvml.nvmlDeviceGetName(handle))),
        memory_bytes=memory and memory.total,
        free_bytes=memory and memory.free,
        load=None if load is None else load / 100,
        processes=tuple(process.pid for process in running or ()),
    )


def warnings(devices: Collection[str]) -> list[str]:
    """Return a warning for each of these devices that another process uses, before a run starts its own processes."""
    return [f"{gpu.device} ({gpu.name}) {gpu.in_use}" for gpu in _of(devices) if gpu.in_use]


def late_warnings(devices: Collection[str]) -> list[str]:
    """Return a warning for each of these devices that another process uses at the end of a run.

    A process that isn't seen here may be one of the run's own in a container, so it doesn't count.
    """
    return [
        f"{gpu.device} ({gpu.name}) is used by another process now ({_listed(others)}), "
        "so times since it started may be too long"
        for gpu in _of(devices)
        if (others := [pid for pid in gpu.others if psutil.pid_exists(pid)])
    ]


def _of(devices: Iterable[str]) -> list[Gpu]:
    wanted = {numbered(device) for device in devices}
    return [gpu for gpu in gpus() if gpu.device in wanted] if wanted else []


def _listed(pids: Iterable[int]) -> str:
    return f"pid {', '.join(map(str, pids))}"
