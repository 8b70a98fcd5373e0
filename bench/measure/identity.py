"""The facts about a machine that only a worker's Python and torch know."""

import platform
import re
from typing import Any

import torch

from bench.machine import nvml
from bench.measure import workload


def torch_facts() -> dict[str, Any]:
    """Return the stable facts of the machine's identity that only a worker's Python and torch know."""
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    gpus = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torch_git": torch.version.git_version,
        "blas": blas[1] if blas else "",
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.cuda.is_available() else None,
        "gpus": {f"cuda:{index}": f"{gpu.name} {gpu.total_memory / 2**30:.0f} GiB" for index, gpu in enumerate(gpus)},
        "driver": nvml.driver(),
        "inputs": workload.INPUTS,
    }
