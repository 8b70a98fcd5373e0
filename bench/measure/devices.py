"""The devices of this machine: what torch and NVML say about them, the rates they reach, and how fast they are now."""

import os
import platform
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import torch

from bench.machine.rates import COPIED_BYTES
from bench.measure import workload
from bench.measure.clock import Call, timer
from bench.plan.case import Point
from bench.plan.work import Roof

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

EXCLUSIVE_PROCESS = 3
"""`NVML_COMPUTEMODE_EXCLUSIVE_PROCESS`."""

SIDES = {"cpu": (256, 512, 1024, 2048, 4096), "cuda": (8192, 16384)}
"""The sides of the matrices that are multiplied: small ones find gaps on a busy machine, many cores need large ones."""

LONGEST_S = 0.02
"""No larger product is tried after one that takes longer than this."""

PROBE_SIDES = {"cpu": 192, "cuda": 4096}
"""The side of the probe's matrices. On a CPU factor and result fit into a core's second cache (288 KiB in float32)."""

PROBE_BYTES = {"cpu": 1 << 21, "cuda": 1 << 26}
"""The bytes that the probe copies: on a CPU they pass through the cache that cores share."""


def torch_facts() -> dict[str, Any]:
    """Return the parts of the machine's identity that only the worker's Python and torch know; nothing volatile."""
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    gpus = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_git": torch.version.git_version,
        "blas": blas[1] if blas else "",
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.cuda.is_available() else None,
        "gpus": {f"cuda:{index}": f"{gpu.name} {gpu.total_memory / 2**30:.0f} GiB" for index, gpu in enumerate(gpus)},
        "driver": _answer(lambda nvml: str(nvml.nvmlSystemGetDriverVersion())),
        "inputs": workload.INPUTS,
    }


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
    return _answer(lambda nvml: nvml.nvmlDeviceGetComputeMode(handle(device)) == EXCLUSIVE_PROCESS) or False


def gpu_state(device: str) -> dict[str, Any]:
    """Return the metrics of a GPU at this moment: the clock of its multiprocessors, and the reasons that limit it.

    Without NVML's package or a driver that responds they are None and empty.
    """

    def state(nvml: Any) -> dict[str, Any]:
        gpu = handle(device)
        clock_mhz = nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
        reasons = tuple(name for bit, name in THROTTLE_REASONS.items() if bits & bit)
        return {"clock_hz": clock_mhz * 1e6, "throttle": reasons}

    return _answer(state) or {"clock_hz": None, "throttle": ()}


def _answer(question: Callable[[Any], T]) -> T | None:
    """Return NVML's answer to a question, None if it has none."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return question(pynvml)
    except Exception:  # ImportError, or NVML's errors, which can't be named if the package is missing
        return None


class DeviceRates:
    """Products and a copy on a point's device, in its dtype and in float32, because a kernel may compute in it."""

    def __init__(self, point: Point) -> None:
        self._timer = timer(point.device, "host")
        self._products = [
            each for dtype in dict.fromkeys((point.dtype, "float32")) for each in self._of_dtype(point.device, dtype)
        ]
        self._bytes = COPIED_BYTES[_kind(point.device)]
        self._copy = copy(point.device, self._bytes // 2)  # which are read and written

    def best(self, turns: int, least_s: float) -> Roof:
        """Return the highest rates in so many turns, or as many more as fit into the seconds."""
        best, end = Roof(0.0, 0.0), perf_counter() + least_s
        while turns > 0 or perf_counter() < end:
            flops_per_s = max(operations / self._timer(product, 1) for operations, product in self._products)
            best = best.raised(Roof(flops_per_s, self._bytes / self._timer(self._copy, 1)))
            turns -= 1
        return best

    def _of_dtype(self, device: str, dtype: str) -> Iterator[tuple[int, Call]]:
        for side in SIDES[_kind(device)]:
            call = product(device, dtype, side)
            call()  # the first call loads the library
            yield 2 * side**3, call
            if self._timer(call, 1) > LONGEST_S:
                break


class SpeedProbe:
    """A matrix product and a copy on a point's device, in its dtype and with the threads of this process."""

    def __init__(self, point: Point) -> None:
        kind = _kind(point.device)
        self._timer = timer(point.device, "host")
        self._product = product(point.device, point.dtype, PROBE_SIDES[kind])
        self._copy = copy(point.device, PROBE_BYTES[kind])
        self.times_s()  # the first call loads the library

    def times_s(self) -> tuple[float, float]:
        """Return the seconds of the product and of the copy; each is called before, to bring its data into caches."""
        self._copy()
        self._product()
        return self._timer(self._product, 1), self._timer(self._copy, 1)


def product(device: str, dtype: str, side: int) -> Call:
    """Return a call that multiplies two square matrices."""
    factor = torch.randn(side, side, device=device).to(getattr(torch, dtype))
    result = torch.empty_like(factor)
    return lambda: torch.mm(factor, factor, out=result)


def copy(device: str, size: int) -> Call:
    """Return a call that copies so many bytes."""
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _kind(device: str) -> str:
    return torch.device(device).type
