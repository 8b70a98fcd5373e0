"""The time that a model's attention cores take: in a profiled call of the model, and beside one fused operator."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.profiler import profile, record_function

import impls
from bench.measure import workload
from bench.measure.devices import Device, device
from bench.measure.inspection import MICROSECOND_S, NO_KERNEL, with_children
from bench.plan.device import HOST, Kind
from impls.modules import flow, watch
from impls.modules.proposal import Proposal
from impls.modules.wrapper import Wrapper

CORE_BUDGET_S, WARM_PAIRS, LEAST_PAIRS = 0.5, 2, 3
"""The seconds for pairs of calls of a core, the pairs that don't count, because the first is slower, and the fewest."""

CALL, LAYER = "model call", "model layer "
"""The labels of a call, and of a layer before its path."""

WHOLE = re.compile(rf"aten::({watch.FUSED.pattern}|{watch.WHOLE.pattern})")

NAMES = {
    **{f"aten::{name}": kind for name, kind in flow.KINDS.items()},
    "aten::scaled_dot_product_attention": flow.CORE,
}
"""The operators by which cores are known, by their names in a profile; those that compute one alone have more names."""

AROUND = ("aten::matmul", "aten::einsum")
"""The operators that may copy a product's operands before it."""

BACKWARD = "autograd::engine::evaluate_function"

Span = tuple[float, float]
"""Begin and end in microseconds."""


def profiled(call: Callable[[], object], model: Wrapper, seen: watch.Watch, on: Device) -> dict[str, Any]:
    """Return the seconds of a profiled call: in all, in its cores, and in each layer that has one.

    Raises `impls.Unsupported` if the profiler saw nothing of it.
    """
    with _labelled(model, {core.layer for core in seen.cores}):
        with profile(activities=on.activities) as profiler, record_function(CALL):
            on.timer(HOST)(call, 1)
    events = sorted(
        (event for event in profiler.events() or [] if event.device_type.name == "CPU"),
        key=lambda event: (event.time_range.start, -event.time_range.end),
    )
    whole = next(event for event in events if event.name == CALL)
    forward = [event for event in events if event.thread == whole.thread]
    layers: dict[str, list[Span]] = {}
    for event in events:
        if event.name.startswith(LAYER):
            layers.setdefault(event.name.removeprefix(LAYER), []).append(_span(event))
    if not (total_s := _seconds(events, [_span(whole)], on.kind)):
        raise impls.Unsupported(NO_KERNEL)
    return {
        "total_s": total_s,
        "core_s": _seconds(events, spans_of_cores(forward, seen.operators, seen.steps), on.kind),
        "layers": {path: _seconds(events, spans, on.kind) for path, spans in layers.items()},
    }


@contextmanager
def _labelled(model: Wrapper, paths: Iterable[str]) -> Iterator[None]:
    """Label the layers at these paths for the profiler, by hooks that hold for all modules.

    Hooks of single modules would end the fast path of torch's own.
    """
    by_module = {id(model.inner.get_submodule(path)): path for path in paths}
    running: list[Any] = []

    def begin(module: nn.Module, _args: Any) -> None:
        if id(module) in by_module:
            running.append(record_function(LAYER + by_module[id(module)]).__enter__())

    def end(module: nn.Module, _args: Any, _output: Any) -> None:
        if id(module) in by_module and running:
            running.pop().__exit__(None, None, None)

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        yield


def spans_of_cores(events: Sequence[Any], operators: Sequence[str], cores: Sequence[Sequence[int]]) -> list[Span]:
    """Return the spans of the attention cores among a profile's events, which are ordered by their begin.

    `operators` are the operators by which cores are known, in order, as a watch has seen them, and each core has the
    places of its own. A core goes from the first of them to the last, without operators of other layers between.
    Raises `impls.Unsupported` if the profile has other operators.
    """
    places: list[Span] = []
    names: list[str] = []
    around, done = (0.0, 0.0), 0.0
    for event in events:
        if event.name in AROUND and _span(event)[0] >= around[1]:
            around = _span(event)
        name = NAMES.get(event.name) or (flow.CORE if WHOLE.match(event.name) else None)
        if name is not None and _span(event)[0] >= done:  # else inside an operator that was taken as a whole
            begin, end = _span(event)
            places.append(around if begin < around[1] else (begin, end))
            names.append(name)
            done = end
    last = max(core[-1] for core in cores)
    if names[: last + 1] != [*operators][: last + 1]:
        raise impls.Unsupported(
            "under the profiler the model ran other products and softmaxes than when it was watched"
        )
    spans: list[Span] = []
    for core in cores:
        begin = places[core[0]][0]
        for number in range(core[0] + 1, core[-1]):
            if number not in core:
                spans.append((begin, places[number][0]))
                begin = places[number][1]
        spans.append((begin, places[core[-1]][1]))
    return spans


def _seconds(events: Sequence[Any], spans: Sequence[Span], kind: Kind) -> float:
    """Return the seconds of spans, with those of the backward pass of what ran in them; on a GPU those of kernels."""

    def is_inside(event: Any) -> bool:
        return any(begin <= event.time_range.start < end for begin, end in spans)

    inside = [event for event in events if is_inside(event)]
    numbers = {event.sequence_nr for event in inside if event.sequence_nr >= 0}
    nodes = (event for event in events if event.name.startswith(BACKWARD) and event.sequence_nr in numbers)
    backward = [node for node in nodes if not is_inside(node)]
    if not kind.is_timed_by_host:
        kernels = (kernel for event in (*inside, *with_children(backward)) for kernel in event.kernels)
        return float(sum(kernel.duration for kernel in kernels)) * MICROSECOND_S
    forward_us = sum(end - begin for begin, end in spans)
    return float(forward_us + sum(event.cpu_time_total for event in backward)) * MICROSECOND_S


def _span(event: Any) -> Span:
    return float(event.time_range.start), float(event.time_range.end)


def beside_sdpa(proposal: Proposal, work: workload.Workload) -> list[list[float]]:
    """Return pairs of seconds of a core as the model computes it and by its proposal, in turns.

    Both get the tensors of the observed call, as they lay there. The result is brought into the order of tokens, with
    the heads of each together. In training the backward pass counts, with the gradients of biases and other terms.
    """
    trace, recorded = proposal.trace, proposal.recorded()
    sources = {number: trace.sources.get(number, operand) for number, operand in trace.operands.items()}
    sources = {number: _leaf(each, work) for number, each in sources.items()}
    recorded |= {name: _leaf(recorded[name], work) for name in "qkv"}
    terms = [term.tensor for term in proposal.terms.values() if term.tensor.requires_grad]

    def written() -> torch.Tensor:
        operands = {number: each.reshape(trace.operands[number].shape) for number, each in sources.items()}
        return proposal.output(trace.again(operands))

    def fused() -> torch.Tensor:
        return proposal.value(recorded)

    def step(attend: Callable[[], torch.Tensor], inputs: Iterable[torch.Tensor]) -> None:
        o = attend()
        o = (o.transpose(-2, -3) if o.dim() > len("NC") else o).contiguous()
        if work.point.mode in workload.TRAINED:
            torch.autograd.grad(o, [*inputs, *terms], torch.ones_like(o), allow_unused=True)

    sides = partial(step, written, sources.values()), partial(step, fused, [recorded[name] for name in "qkv"])
    timed, pairs = device(work.point.device).timer(HOST), list[list[float]]()
    begin = time.perf_counter()
    while len(pairs) < WARM_PAIRS + LEAST_PAIRS or time.perf_counter() - begin < CORE_BUDGET_S:
        pairs.append([timed(side, 1).call_s for side in sides])
    return pairs[WARM_PAIRS:]


def _leaf(tensor: torch.Tensor, work: workload.Workload) -> torch.Tensor:
    return tensor.detach().requires_grad_(work.with_gradients)
