"""Read the state of this machine's NVIDIA GPUs from NVML; results are empty without its package or a driver."""

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
"""The compute mode in which only one process can use a GPU. Source: NVML API reference, nvmlComputeMode_t."""

BUSY = 0.05
"""The load of a GPU above which another process is taken to use it."""

THROTTLE_REASONS = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""The bits of `nvmlClocksThrottleReasons` that slow a kernel, without the bits for an idle GPU and a clock setting.
Source: NVML API reference, group nvmlClocksEventReasons."""

READINGS: Mapping[str, Callable[[Any, Any], float]] = {
    "clock_hz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM) * 1e6,
    "power_w": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3,
    "temperature_c": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    "reasons": lambda nvml, gpu: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu),
}
"""The readings of a GPU's state, each as a function of NVML and the GPU's handle that takes 10 to 100 µs."""


def ask(question: Callable[[Any], T]) -> T | None:
    """Call a function with NVML and return its result; None without NVML's package or a driver, or after an error."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return question(pynvml)
    except Exception:  # NVML's errors can't be named if the package is missing
        return None


def driver() -> str | None:
    """Return the version of the driver; None without NVML."""
    return ask(lambda nvml: str(nvml.nvmlSystemGetDriverVersion()))


def handle(uuid: str) -> Any:
    """Return NVML's handle of a GPU by CUDA's uuid, because NVML's numbers ignore CUDA_VISIBLE_DEVICES."""
    return ask(lambda nvml: nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}"))


def is_exclusive(uuid: str) -> bool:
    """Return whether only one process can use a GPU at a time; False if NVML doesn't say."""
    if (Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")) / "control").exists():  # noqa: S108
        return False  # MPS lets processes share it
    return ask(lambda nvml: nvml.nvmlDeviceGetComputeMode(handle(uuid))) == EXCLUSIVE_PROCESS


def energy_j(uuid: str) -> float | None:
    """Return the joules that a GPU's board has used since its driver was loaded; the counter moves every 20 ms."""
    return ask(lambda nvml: float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle(uuid))) / 1e3)


class States:
    """A series of readings of a GPU's state."""

    def __init__(self, uuid: str) -> None:
        self._gpu = handle(uuid)
        self._read: dict[str, list[Any]] = defaultdict(list)

    def read(self) -> None:
        """Read the current state; call it right after a timing, because an idle GPU lowers its clock rate."""
        for name, reading in READINGS.items():
            value = ask(lambda nvml, reading=reading: reading(nvml, self._gpu))  # type: ignore[misc]
            self._read[name] += [] if value is None else [value]  # not every GPU has every reading

    @property
    def metrics(self) -> dict[str, Any]:
        """The range of the SM clock rate, the highest power and temperature, and all reasons for throttling."""
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
    """The state of a GPU at one moment; values that NVML doesn't know are None.

    `load` is the share of the last second, or less, in which a kernel ran. `processes` are the pids of all processes
    that compute on it; in a container they may be the host's pids, or empty.
    """

    device: str
    name: str
    memory_bytes: int | None
    free_bytes: int | None
    load: float | None
    processes: tuple[int, ...]

    @property
    def words(self) -> str:
        """The name and memory of the GPU in a few words."""
        if self.memory_bytes is None:
            return self.name
        return f"{self.name}, {units.size(self.memory_bytes)}, {units.size(self.free_bytes)} free"

    @property
    def others(self) -> tuple[int, ...]:
        """The pids on the GPU that are neither this process nor its descendants."""
        own = {each.pid for each in psutil.Process().children(recursive=True)}
        return tuple(sorted({*self.processes} - {os.getpid()} - own))

    @property
    def in_use(self) -> str:
        """A warning that another process uses the GPU, with advice; empty if none is seen."""
        if self.others:
            who = f"is used by {'another process' if len(self.others) == 1 else f'{len(self.others)} other processes'}"
            return f"{who} ({_listed(self.others)}); end it, or choose another GPU with CUDA_VISIBLE_DEVICES"
        if (self.load or 0.0) > BUSY and not self.processes:
            return (
                f"was busy {units.percent(self.load)} of the time with a process that isn't visible here; wait for it"
            )
        return ""


def gpus() -> list[Gpu]:
    """Return the GPUs that a process may use, in CUDA's order; empty without NVML's package or a driver."""
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
    """Return a warning for each of these devices that another process uses; call it before a run starts workers."""
    return [f"{gpu.device} ({gpu.name}) {gpu.in_use}" for gpu in _of(devices) if gpu.in_use]


def late_warnings(devices: Collection[str]) -> list[str]:
    """Return a warning for each of these devices that another process uses at the end of a run.

    Pids that don't exist here don't count, because in a container they may be the run's own.
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
