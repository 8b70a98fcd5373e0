"""Inspect one call outside all timing: the operators and kernels that did its work, and its memory.

A runtime other than torch reports its operators itself, because torch's profiler doesn't see them.
"""

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler import profile
from torch.profiler import ProfilerActivity

import impls
from bench.measure import clock, memory
from bench.measure.devices import Device, device
from bench.measure.subjects import Subject
from bench.measure.workload import Workload
from bench.modules.graph.running import InGraph
from bench.modules.wrapper import Wrapper
from bench.plan.device import Kind
from impls.catalogue import name_of
from impls.contract import attribute, is_ours

METADATA = frozenset(
    f"aten::{name}"
    for name in """
        _nnpack_available _reshape_alias _unsafe_view alias as_strided as_strided_ broadcast_tensors chunk contiguous
        detach detach_ empty empty_like empty_strided expand expand_as flatten lift_fresh linear matmul movedim narrow
        new_empty new_full new_zeros ones_like permute reshape resize_ resolve_conj resolve_neg result_type select slice
        split split_with_sizes squeeze stack swapaxes t to _to_copy transpose unbind unflatten unsafe_split unsqueeze
        view view_as zeros zeros_like
    """.split()  # noqa: SIM905 - a list would take a line for each name
)
"""Operators that only make views, allocate memory, or call other operators for the work."""

OWN_WORK = frozenset(
    f"aten::{name}"
    for name in ["addmm", "addmv", "baddbmm", "_addmm_activation", "_slow_conv2d_forward", "_slow_conv2d_backward"]
)
"""Operators that call another one to copy the bias, and then work themselves: both are listed."""

ATTENTION = re.compile(r"scaled_dot_product_\w*attention_?\w*|multi_head_attention|flex_attention")
"""Operators that stand for an attention algorithm: they are listed even if the operators inside did the work."""

OPERATOR = re.compile(r"(?!autograd::)\w+::\w+")
"""The names of operators of torch and of extensions, but not of labels."""

REPEATED = "k and v repeated to all heads"

MICROSECOND_S = 1e-6
"""The unit of an event's times."""

NO_KERNEL = "torch's profiler saw no kernel of the call; check that this user may read the GPU's performance counters"
"""The reason why a profile of a call on a GPU is empty."""

COMPILED_GRAPH = re.compile(r"## Call (CompiledFxGraph)")
"""Inductor's event for one of its graphs; the fused kernels inside have no names without `name_kernels`."""


@dataclass(frozen=True)
class Inspection:
    """The names of the kernels that did the work, and the peak bytes that they needed beyond the bytes held before."""

    kernels: tuple[str, ...]
    peak_bytes: int | None
    """None if another thread of the host worked, because torch's profiler counts the allocations of one thread."""


def inspect(call: Callable[[], object], device: Device) -> Inspection:
    """Inspect two calls: one for kernels, and one for memory, because a profile of all threads has no allocations."""
    events = profiled(call, device)
    is_spread = device.kind.is_in_host_memory and any(map(_is_in_another_thread, events))
    return Inspection(kernels(events, device.kind), None if is_spread else device.peak_bytes(call))


def profiled(call: Callable[[], object], device: Device) -> Sequence[Any]:
    """Return the profiler's events of one call, in all threads of the host.

    It is the profiler underneath torch.profiler, because that imports the compiler for more than a second.
    """
    clock.prepare(call, 1)
    on = "cuda" if ProfilerActivity.CUDA in device.activities else None
    config = _ExperimentalConfig(profile_all_threads=device.kind.is_in_host_memory)
    with profile(use_device=on, use_kineto=True, experimental_config=config) as profiler:
        call()
        device.synchronize()
    return profiler.function_events or []


def metrics(call: Callable[[], object], subject: Subject, work: Workload) -> dict[str, Any]:
    """Return the metrics of one call: its kernels, its memory, and the bytes that autograd keeps for backward.

    The kernels of another runtime are the operators that it reports. Memory is unknown for a runtime, for a call that
    works in another thread, and where torch sees nothing.
    """
    inspected = inspect(call, device(work.point.device))
    runtime = subject.function if isinstance(subject.function, impls.Runtime) else None
    operators = (f"{operator.name} {operator.dtype}".strip() for operator in (runtime.operators() if runtime else ()))
    values: dict[str, Any] = {"kernels": tuple(dict.fromkeys(operators)) or inspected.kernels}
    values["adapted_by"] = adapted_by(subject.function)
    if runtime is None and inspected.peak_bytes is not None and (inspected.kernels or inspected.peak_bytes):
        values["peak_bytes"] = inspected.peak_bytes
    if work.with_gradients:
        inputs = work.leaves(work.inputs())
        values["saved_bytes"] = memory.saved_bytes(
            lambda: subject.function(*inputs), [*inputs, *subject.layer.parameters(), *subject.layer.buffers()]
        )
    return values


def adapted_by(function: object) -> str | None:
    """Return how the core of a module from another package was replaced, with the wrapper's remarks; None if empty.

    For any layer it includes the core's attribute `says`, and a remark if keys and values were repeated because the
    core takes no grouped heads.
    """
    modules = function.modules() if isinstance(function, nn.Module) else ()
    cores = [attribute(each, "attend") for each in modules]
    each = [core for pair in ((core, getattr(core, "func", None)) for core in cores) for core in pair]
    repeated = REPEATED if any(getattr(core, "repeats", False) for core in each) else ""
    own = next((says for core in each if isinstance(says := getattr(core, "says", ""), str) and says), "")
    said = function.said if isinstance(function, Wrapper | InGraph) else ()
    way = "" if is_ours(function) else getattr(function, "adapted_by", "")
    return "; ".join(filter(None, (way, own, repeated, *said))) or None


def kernels(events: Iterable[Any], kind: Kind) -> tuple[str, ...]:
    """Return the names of the operators or kernels that did the work, in the order of their start, without repeats.

    On the CPU they are operators, and CompiledFxGraph if Inductor's own kernels ran.
    On a GPU they are the operators that stand for an attention algorithm, then the kernels.
    """
    events = sorted(events, key=lambda event: event.time_range.start)
    operators = _operators(events, only_algorithms=not kind.is_timed_by_host)
    return tuple(dict.fromkeys((*operators, *_device_kernels(events))))


def fallback(implementation: str, ran: Iterable[str]) -> str:
    """Return a message with the kernels that ran instead of the one an implementation requires; empty if that ran."""
    expected = name_of(implementation).entry.kernel
    if not expected or any(expected in kernel for kernel in ran):
        return ""
    algorithms = [kernel for kernel in ran if ATTENTION.search(kernel)]
    return f"{implementation} must run {expected}, but {', '.join(algorithms or ran)} ran"


def _operators(events: Iterable[Any], *, only_algorithms: bool) -> Iterable[str]:
    for event in events:
        if not only_algorithms and (graph := COMPILED_GRAPH.match(event.name)):
            yield graph[1]
        if OPERATOR.match(event.name) and (_is_algorithm(event.name) or (not only_algorithms and _did_work(event))):
            yield event.name.removeprefix("aten::")


def _device_kernels(events: Iterable[Any]) -> Iterable[str]:
    on_device = (event for event in events if event.device_type.name == "CUDA" and not event.is_user_annotation)
    return (event.name for event in on_device if not event.name.startswith("Mem"))


def _is_algorithm(name: str) -> bool:
    """Return whether an operator stands for an attention algorithm, unlike torch's function, which chooses one."""
    return bool(ATTENTION.search(name)) and name != "aten::scaled_dot_product_attention"


def _is_in_another_thread(event: Any) -> bool:
    """Return whether an operator worked in another thread than this one; OpenMP's threads only allocate in some."""
    return event.device_resource_id != threading.get_native_id() and event.name not in METADATA


def _did_work(event: Any) -> bool:
    if event.name in METADATA or event.name == "aten::scaled_dot_product_attention":
        return False
    return event.name in OWN_WORK or all(_is_idle(child) for child in event.cpu_children)


def _is_idle(event: Any) -> bool:
    return event.name in METADATA and all(_is_idle(child) for child in event.cpu_children)
