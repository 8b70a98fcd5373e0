"""Inspection of one call outside all timing: the kernels that ran and the memory that it needed.

A runtime beside torch is asked what it runs, because torch's profiler doesn't see it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile

import impls
from bench.measure import dispatch, memory
from bench.plan.layers import ITEM_BYTES


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


def operators(function: object) -> tuple[str, ...]:
    """Return the operators that another runtime runs, each once; empty for torch, and if the runtime does not say."""
    reported = function.operators() if isinstance(function, impls.Runtime) else ()
    return tuple(dict.fromkeys(f"{operator.name} {operator.dtype}".strip() for operator in reported))


def has_own_memory(function: object) -> bool:
    """Return whether an implementation's memory is not that of torch's allocator, as far as is known."""
    return isinstance(function, impls.Runtime) and function.has_own_memory


def narrower(runtime: impls.Runtime, dtype: str) -> str:
    """Return a text that names an operator of a runtime with fewer bits than a point's dtype, empty if none has."""
    for operator in runtime.operators():
        if ITEM_BYTES.get(operator.dtype, ITEM_BYTES[dtype]) < ITEM_BYTES[dtype]:
            return f"{runtime.title} says that it computes in {operator.dtype}: {operator.name}"
    return ""
