"""What NVML says of NVIDIA GPUs; each answer is empty without its package, or without a driver that responds."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

from bench.machine.gpus import MODES

T = TypeVar("T")

THROTTLE_REASONS = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Bits of `nvmlClocksThrottleReasons` that slow a kernel; the bits for an idle GPU and a clock setting are left out.
Source: NVML API reference, group nvmlClocksEventReasons."""


def driver() -> str | None:
    """Return the version of the driver."""
    return _answer(lambda nvml: str(nvml.nvmlSystemGetDriverVersion()))


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
        _answer(lambda nvml: MODES.get(nvml.nvmlDeviceGetComputeMode(handle(device))) == "EXCLUSIVE_PROCESS") or False
    )


def state(device: str) -> dict[str, Any]:
    """Return the metrics of a GPU at this moment: the clock of its multiprocessors, and the reasons that limit it."""

    def answer(nvml: Any) -> dict[str, Any]:
        gpu = handle(device)
        clock_mhz = nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
        reasons = tuple(name for bit, name in THROTTLE_REASONS.items() if bits & bit)
        return {"clock_hz": clock_mhz * 1e6, "throttle": reasons}

    return _answer(answer) or {"clock_hz": None, "throttle": ()}


def _answer(question: Callable[[Any], T]) -> T | None:
    """Return NVML's answer to a question, None if it has none."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return question(pynvml)
    except Exception:  # ImportError, or NVML's errors, which can't be named if the package is missing
        return None
