"""What can be seen of one call outside all timing: the kernels that ran, and the memory that it held."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile

from bench.measure import dispatch, memory


@dataclass(frozen=True)
class Seen:
    """The names of what did the work, and the memory that it took."""

    kernels: tuple[str, ...]
    memory: memory.Memory


def look(call: Callable[[], object], device: str) -> Seen:
    """Return what one call did; on the CPU one profile tells both, on a GPU memory has a call of its own."""
    on_cpu = device == "cpu"
    activities = [ProfilerActivity.CPU] if on_cpu else [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities, profile_memory=on_cpu) as profiler:
        call()
        if not on_cpu:
            torch.cuda.synchronize(device)
    used = memory.of_profile(profiler) if on_cpu else memory.on_cuda(call, device)
    return Seen(dispatch.kernels(profiler, device), used)
