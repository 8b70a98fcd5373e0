"""The facts about the machine that torch knows, as part of its identity."""

import platform
import re
from typing import Any

import torch

from bench.measure import gpu_state, workload


def torch_facts() -> dict[str, Any]:
    """Return the parts of the identity that only the worker's Python and torch know; nothing volatile."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_git": torch.version.git_version,
        "blas": _blas(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.cuda.is_available() else None,
        "gpus": _gpus(),
        "driver": gpu_state.driver(),
        "inputs": workload.INPUTS,
    }


def _blas() -> str:
    match = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return match[1] if match else ""


def _gpus() -> dict[str, str]:
    if not torch.cuda.is_available():
        return {}
    properties = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return {f"cuda:{index}": f"{gpu.name} {gpu.total_memory / 2**30:.0f} GiB" for index, gpu in enumerate(properties)}
