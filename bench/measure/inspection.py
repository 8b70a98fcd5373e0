"""Inspection of one call outside all timing: the operators and kernels that did its work, and the memory it needed.

A runtime beside torch is asked what it runs, because torch's profiler doesn't see it.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

import impls
from bench.measure import memory
from bench.plan.layers import ITEM_BYTES
from impls.catalogue import IMPLEMENTATIONS
from impls.name import parse

METADATA = frozenset(
    "aten::" + name
    for name in [
        "_nnpack_available",
        "_reshape_alias",
        "_unsafe_view",
        "alias",
        "as_strided",
        "as_strided_",
        "broadcast_tensors",
        "chunk",
        "contiguous",
        "detach",
        "detach_",
        "empty",
        "empty_like",
        "empty_strided",
        "expand",
        "expand_as",
        "flatten",
        "lift_fresh",
        "linear",
        "matmul",
        "movedim",
        "narrow",
        "new_empty",
        "new_full",
        "new_zeros",
        "ones_like",
        "permute",
        "reshape",
        "resize_",
        "resolve_conj",
        "resolve_neg",
        "result_type",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "stack",
        "swapaxes",
        "t",
        "to",
        "_to_copy",
        "transpose",
        "unbind",
        "unflatten",
        "unsafe_split",
        "unsqueeze",
        "view",
        "view_as",
        "zeros",
        "zeros_like",
    ]
)
"""Operators that only make views, allocate memory, or call other operators for the work."""

OWN_WORK = frozenset(
    "aten::" + name
    for name in ["addmm", "addmv", "baddbmm", "_addmm_activation", "_slow_conv2d_forward", "_slow_conv2d_backward"]
)
"""Operators that do work themselves after another operator has copied the bias: both are listed."""

ATTENTION = re.compile(r"scaled_dot_product_\w*attention_?\w*|multi_head_attention|flex_attention")
"""Operators that represent an algorithm: they are listed even if their parts did the work."""

OPERATOR = re.compile(r"(?!autograd::)\w+::\w+")
"""The names of operators of torch and of extensions; labels don't match."""

COMPILED_GRAPH = re.compile(r"## Call (CompiledFxGraph)")
"""Inductor's event for one of its graphs; the fused kernels inside have names only if `name_kernels` was called."""


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
    return Inspection(kernels(profiler, device), needed)


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


def kernels(profiler: profile, device: str) -> tuple[str, ...]:
    """Return the names of the operators or kernels that did the work in a profile, by first start, without repeats.

    On the CPU these are operators, and CompiledFxGraph if Inductor's own kernels ran.
    On a GPU they are the operators that represent an attention algorithm, then the kernels.
    """
    events = sorted(profiler.events() or [], key=lambda event: event.time_range.start)
    return tuple(dict.fromkeys(_algorithms(events) if device != "cpu" else _operators(events))) + tuple(
        dict.fromkeys(_device_kernels(events))
    )


def fallback(implementation: str, ran: Iterable[str]) -> str:
    """Return a text with the kernels that ran instead of an implementation's required one, empty if that one ran."""
    entry = IMPLEMENTATIONS.get(parse(implementation).base)
    expected = entry.kernel if entry else ""
    if not expected or any(expected in kernel for kernel in ran):
        return ""
    algorithms = [kernel for kernel in ran if ATTENTION.search(kernel)]
    return f"{implementation} must run {expected}; {', '.join(algorithms or ran)} ran"


def _operators(events: Iterable[Any]) -> Iterable[str]:
    for event in events:
        if graph := COMPILED_GRAPH.match(event.name):
            yield graph[1]
        if OPERATOR.match(event.name) and (_is_algorithm(event.name) or _did_work(event)):
            yield _short(event.name)


def _algorithms(events: Iterable[Any]) -> Iterable[str]:
    return (_short(event.name) for event in events if OPERATOR.match(event.name) and _is_algorithm(event.name))


def _device_kernels(events: Iterable[Any]) -> Iterable[str]:
    on_device = (event for event in events if event.device_type.name == "CUDA" and not event.is_user_annotation)
    return (event.name for event in on_device if not event.name.startswith("Mem"))


def _is_algorithm(name: str) -> bool:
    """Return whether an operator represents an attention algorithm; the public function, which chooses one, doesn't."""
    return bool(ATTENTION.search(name)) and name != "aten::scaled_dot_product_attention"


def _did_work(event: Any) -> bool:
    if event.name in METADATA or event.name == "aten::scaled_dot_product_attention":
        return False
    return event.name in OWN_WORK or all(_is_idle(child) for child in event.cpu_children)


def _is_idle(event: Any) -> bool:
    return event.name in METADATA and all(_is_idle(child) for child in event.cpu_children)


def _short(name: str) -> str:
    return name.removeprefix("aten::")
