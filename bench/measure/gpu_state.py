"""A GPU's clock, the reasons that limit it, and whether processes can share it, from NVML."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

THROTTLE_REASONS = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Bits of `nvmlClocksThrottleReasons` that slow a kernel; the bits for an idle GPU and a clock setting are left out.
Source: NVML API reference, group nvmlClocksEventReasons."""

EXCLUSIVE_PROCESS = 3
"""`NVML_COMPUTEMODE_EXCLUSIVE_PROCESS`."""

T = TypeVar("T")


@dataclass(frozen=True)
class GpuState:
    """The clock of the multiprocessors in Hz and the reasons that limit it; None and empty if NVML is not available."""

    clock_hz: float | None = None
    throttle: tuple[str, ...] = ()


def handle(device: str) -> Any:
    """Return NVML's handle of a CUDA device; raises ImportError without NVML's package, and NVML's own errors."""
    import pynvml

    pynvml.nvmlInit()
    uuid = torch.cuda.get_device_properties(device).uuid  # NVML's numbering ignores CUDA_VISIBLE_DEVICES
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")


def driver() -> str | None:
    """Return the version of the GPU's driver, None if NVML is not available."""
    return _answer(lambda nvml: str(nvml.nvmlSystemGetDriverVersion()))


def is_exclusive(device: str) -> bool:
    """Return whether only one process at a time can use a CUDA device; False if there is none or NVML doesn't say."""
    if (Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")) / "control").exists():  # noqa: S108
        return False  # MPS lets processes share it
    mode = _answer(lambda nvml: int(nvml.nvmlDeviceGetComputeMode(handle(device))))
    return mode == EXCLUSIVE_PROCESS


def read(device: str) -> GpuState:
    """Return the current state of a CUDA device; it is empty without NVML's package or a driver that responds."""

    def state(nvml: Any) -> GpuState:
        gpu = handle(device)
        clock_mhz = nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
        return GpuState(clock_mhz * 1e6, tuple(name for bit, name in THROTTLE_REASONS.items() if bits & bit))

    return _answer(state) or GpuState()


def _answer(question: Callable[[Any], T]) -> T | None:
    """Return NVML's answer to a question, None if it has none."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return question(pynvml)
    except Exception:  # ImportError, or NVML's errors, which can't be named if the package is missing
        return None
