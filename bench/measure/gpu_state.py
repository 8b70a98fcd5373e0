"""A GPU's clock, and what holds it down, as NVML tells them."""

from dataclasses import dataclass
from typing import Any

import torch

THROTTLE_REASONS = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Bits of `nvmlClocksThrottleReasons` that slow a kernel down; an idle GPU or a clock setting is none of them.
Source: NVML API reference, group nvmlClocksEventReasons."""


@dataclass(frozen=True)
class GpuState:
    """The clock of the multiprocessors in Hz, and the reasons that hold it down; None and none where nobody tells."""

    clock_hz: float | None = None
    throttle: tuple[str, ...] = ()


def driver() -> str | None:
    """Return the version of the GPU's driver, None where nobody tells."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except Exception:  # the package is missing, or its errors can't be named before it is imported
        return None


def handle(device: str) -> Any:
    """Return what NVML calls a CUDA device; raises ImportError without NVML's package, and NVML's own errors."""
    import pynvml

    pynvml.nvmlInit()
    uuid = torch.cuda.get_device_properties(device).uuid  # NVML's numbering ignores CUDA_VISIBLE_DEVICES
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")


def read(device: str) -> GpuState:
    """Return the state of a CUDA device now; without NVML's package, or a driver that answers, nothing is known."""
    try:
        import pynvml
    except ImportError:
        return GpuState()
    try:
        of = handle(device)
        clock_mhz = pynvml.nvmlDeviceGetClockInfo(of, pynvml.NVML_CLOCK_SM)
        bits = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(of)
    except pynvml.NVMLError:
        return GpuState()
    return GpuState(clock_mhz * 1e6, tuple(name for bit, name in THROTTLE_REASONS.items() if bits & bit))
