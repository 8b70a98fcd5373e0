"""Inspection of one call outside all timing: the kernels that ran and the memory that it needed."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile

from bench.measure import dispatch, memory


@dataclass(frozen=True)
class Inspection:
    """The names of the kernels that did the work, and the memory that they needed."""

    kernels: tuple[str, ...]
    memory: memory.Memory


def inspect(call: Callable[[], object], device: str) -> Inspection:
    """Inspect one call; on the CPU one profile gives kernels and memory, on a GPU memory needs a second call."""
    on_cpu = device == "cpu"
    activities = [ProfilerActivity.CPU] if on_cpu else [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities, profile_memory=on_cpu) as profiler:
        call()
        if not on_cpu:
            torch.cuda.synchronize(device)
    needed = memory.of_profile(profiler) if on_cpu else memory.on_cuda(call, device)
    return Inspection(dispatch.kernels(profiler, device), needed)
