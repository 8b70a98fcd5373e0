"""What NVML says of NVIDIA GPUs; each answer is empty without its package, or without a driver that responds."""

import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from bench.machine.facts import ask_nvml
from bench.machine.gpus import MODES

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


def driver() -> str | None:
    """Return the version of the driver."""
    return ask_nvml(lambda nvml: str(nvml.nvmlSystemGetDriverVersion()))


def handle(device: str) -> Any:
    """Return NVML's handle of a CUDA device; raises ImportError without NVML's package, and NVML's own errors."""
    import pynvml

    pynvml.nvmlInit()
    uuid = torch.cuda.get_device_properties(device).uuid  # NVML's numbering ignores CUDA_VISIBLE_DEVICES
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")


def is_exclusive(device: str) -> bool:
    """Return whether only one process at a time can use a CUDA device; False if there is none or NVML doesn't say."""
    if (Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")) / "control").exists():  # noqa: S108
        return False  # MPS lets processes share it
    return (
        ask_nvml(lambda nvml: MODES.get(nvml.nvmlDeviceGetComputeMode(handle(device))) == "EXCLUSIVE_PROCESS") or False
    )


class States:
    """The states of a GPU that were read one after the other."""

    def __init__(self, device: str) -> None:
        self._gpu = ask_nvml(lambda _: handle(device))
        self._read: dict[str, list[Any]] = defaultdict(list)

    def read(self) -> None:
        """Read the state of this moment, outside of timings and right after one: an idle GPU lowers its clock."""

        def ask(nvml: Any) -> None:
            for name, reading in READINGS.items():
                with suppress(Exception):  # what one GPU doesn't say, another does
                    self._read[name].append(reading(nvml, self._gpu))

        if self._gpu is not None:
            ask_nvml(ask)

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
