"""A look at a model: where its attention is, which kernels run there, and its share of the time.

A call is looked at in three ways: plainly under the profiler, under a dispatch mode that sees operators with their
shapes, and under hooks that tell the profiler which layer begins. The kernels of all three must agree.
"""

import dataclasses
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.profiler import ProfilerActivity, profile, record_function

import impls
from bench.measure import inspection, workload
from bench.measure.forking import Channel
from bench.plan.case import Point
from impls.models import flow, settings, watch
from impls.models.model import Model

CALLS, LEAST_CALLS, BUDGET_S = 7, 3, 4.0
"""The profiled calls of a look, and how many are made after BUDGET_S."""

CORE_BUDGET_S = 0.5
"""The seconds for each kind of core that separate operators compute, beside `F.scaled_dot_product_attention`."""

WARM_CALLS = 2
"""Calls before all others: the first one is slower."""

MICROSECOND_S = 1e-6

CALL, LAYER = "model call", "model layer "
"""The labels of a call, and of a layer before its path."""

WHOLE = re.compile(rf"aten::({watch.FUSED.pattern}|{watch.WHOLE.pattern})")

NAMES = {
    **{f"aten::{name}": kind for name, kind in flow.KINDS.items()},
    "aten::scaled_dot_product_attention": watch.CORE,
}
"""The operators by which cores are known, by their names in a profile; those that compute one alone have more names."""

AROUND = ("aten::matmul", "aten::einsum")
"""The operators that may copy a product's operands before it."""

NO_WORK = {"add", "add_", "dropout", "feature_dropout", "alpha_dropout", "mT", "mH", "numpy_T", "T"}
"""Operators that make a view, or return their input outside training; under a dispatch mode they are not called. Nor
are gradients added in place there."""

ALIASES = {"_native_batch_norm_legit": "native_batch_norm"}
"""Operators that have another name under a dispatch mode."""

BACKWARD = "autograd::engine::evaluate_function"

Span = tuple[float, float]
"""Begin and end in microseconds."""


def look(request: Mapping[str, Any], channel: Channel) -> dict[str, Any]:
    """Look at the model of a point; reply with its cores, the times of profiled calls, and what settings it has.

    Raises `impls.Unresolved` if the model can't be made or called, `impls.Unsupported` if it has no attention or
    returns other values for the same input.
    """
    point = Point(**request["point"])
    workload.set_up(point)
    channel.announce("model")
    work = workload.make(point, request["seed"])
    model = work.layer
    assert isinstance(model, Model)
    call = workload.step(workload.Subject(model, model), work)
    with work.gradient_mode():
        channel.announce("first call")
        _check_repeats(work, model)
        for _ in range(WARM_CALLS):
            call()
        channel.announce("look")
        plain = _kernels(call, point.device)
        with watch.watched(model) as seen:
            observed = _kernels(call, point.device)
        if not seen.cores:
            raise impls.Unsupported("no attention was found in the model: no fused operator, no product with a softmax")
        paths = list(dict.fromkeys(core.layer for core in seen.cores))
        channel.announce("profile")
        calls = [*_profiled(call, model, paths, point.device, seen)]
        channel.announce("core")
        written = {core.layer: _beside_sdpa(core, work) for core in _kinds(seen.cores) if core.is_plain}
    found = _settings(model, request["settings"], channel)
    return {
        "written": written,
        "cores": [dataclasses.asdict(core) for core in seen.cores],
        "calls": calls,
        "kernels": plain,
        "observed_kernels": observed,
        "settings": found,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "item": list(model.item),
        "library": _library(model),
    }


def _check_repeats(work: workload.Workload, model: nn.Module) -> None:
    """Raise `impls.Unsupported` if the outputs of a model for the same input can't be compared."""
    if model.training and any(isinstance(each, nn.modules.batchnorm._BatchNorm) for each in model.modules()):
        raise impls.Unsupported("the model has BatchNorm, which mixes the items of a batch in mode train")
    if model.training and not torch.equal(model(work.x), model(work.x)):
        raise impls.Unsupported(
            "the model returns other values for the same input, as dropout does in mode train: outputs can't be "
            "compared; set its dropout to 0 by an option in the model's name"
        )


def _kernels(call: Callable[[], object], device: str) -> list[str]:
    with profile(activities=_activities(device)) as profiler:
        call()
    return sorted({ALIASES.get(name, name) for name in inspection.kernels(profiler, device)} - NO_WORK)


def _activities(device: str) -> list[ProfilerActivity]:
    return [ProfilerActivity.CPU] if device == "cpu" else [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def _profiled(
    call: Callable[[], object], model: Model, paths: Sequence[str], device: str, seen: watch.Watch
) -> Iterator[dict[str, Any]]:
    """Yield the seconds of profiled calls: in all, in cores, and in each layer; and those of plain calls beside."""
    begin = time.perf_counter()
    for number in range(CALLS):
        if number >= LEAST_CALLS and time.perf_counter() - begin > BUDGET_S:
            return
        plain_s = _timed_s(call, device)
        with _labelled(model, paths), profile(activities=_activities(device)) as profiler, record_function(CALL):
            call()
            if device != "cpu":
                torch.cuda.synchronize(device)
        yield {"plain_s": plain_s, **_times(profiler, device, seen)}


def _timed_s(call: Callable[[], object], device: str) -> float:
    begin = time.perf_counter()
    call()
    if device != "cpu":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begin


@contextmanager
def _labelled(model: Model, paths: Sequence[str]) -> Iterator[None]:
    """Label the layers at these paths for the profiler, by hooks that hold for all modules.

    Hooks of single modules would end the fast path of torch's own.
    """
    by_module = {id(module): path for path, module in model.inner.named_modules() if path in paths}
    running: list[Any] = []

    def begin(module: nn.Module, _args: Any) -> None:
        if id(module) in by_module:
            running.append(record_function(LAYER + by_module[id(module)]).__enter__())

    def end(module: nn.Module, _args: Any, _output: Any) -> None:
        if id(module) in by_module and running:
            running.pop().__exit__(None, None, None)

    with ExitStack() as hooks:
        hooks.callback(register_module_forward_pre_hook(begin).remove)
        hooks.callback(register_module_forward_hook(end).remove)
        yield


def _times(profiler: profile, device: str, seen: watch.Watch) -> dict[str, Any]:
    """Return the seconds of a profiled call: in all, in its cores, and in each layer."""
    events = sorted(
        (event for event in profiler.events() or [] if event.device_type.name == "CPU"),
        key=lambda event: (event.time_range.start, -event.time_range.end),
    )
    whole = next(event for event in events if event.name == CALL)
    forward = [event for event in events if event.thread == whole.thread]
    in_call: list[Span] = [(whole.time_range.start, whole.time_range.end)]
    layers: dict[str, list[Span]] = {}
    for event in events:
        if event.name.startswith(LAYER):
            layers.setdefault(event.name.removeprefix(LAYER), []).append(_span(event))
    return {
        "total_s": _seconds(events, in_call, device),
        "core_s": _seconds(events, spans_of_cores(forward, seen.operators, seen.steps), device),
        "layers": {path: _seconds(events, spans, device) for path, spans in layers.items()},
    }


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
        name = NAMES.get(event.name) or (watch.CORE if WHOLE.match(event.name) else None)
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


def _seconds(events: Sequence[Any], spans: Sequence[Span], device: str) -> float:
    """Return the seconds of spans, with those of the backward pass of what ran in them; on a GPU those of kernels."""
    inside = [event for event in events if any(begin <= event.time_range.start < end for begin, end in spans)]
    numbers = {event.sequence_nr for event in inside if event.sequence_nr >= 0}
    backward = [
        event
        for event in events
        if event.name.startswith(BACKWARD)
        and event.sequence_nr in numbers
        and not any(begin <= event.time_range.start < end for begin, end in spans)
    ]
    if device != "cpu":
        kernels = (kernel for event in (*inside, *_descendants(backward)) for kernel in event.kernels)
        return float(sum(kernel.duration for kernel in kernels)) * MICROSECOND_S
    forward_us = sum(end - begin for begin, end in spans)
    return float(forward_us + sum(event.cpu_time_total for event in backward)) * MICROSECOND_S


def _descendants(events: Sequence[Any]) -> Iterator[Any]:
    for event in events:
        yield event
        yield from _descendants(event.cpu_children)


def _span(event: Any) -> Span:
    return float(event.time_range.start), float(event.time_range.end)


def _kinds(cores: Sequence[watch.Core]) -> list[watch.Core]:
    """Return one core of each kind: those of a kind differ in their layers alone."""
    return [*{dataclasses.replace(core, layer=""): core for core in reversed(cores)}.values()]


def _beside_sdpa(core: watch.Core, work: workload.Workload) -> list[list[float]]:
    """Return pairs of seconds of a core as separate operators and by `F.scaled_dot_product_attention`, in turns.

    Values are random, of the core's shapes and dtype, and lie as projections of tokens leave them: token after token,
    with the heads of each together. The result is brought into that order too. In training the backward pass counts.
    """
    dtype, device = getattr(torch, core.dtype), work.point.device
    q, k, v = (
        torch.randn(*shape[:-3], *shape[-2:-4:-1], shape[-1], device=device).to(dtype).transpose(-2, -3)
        for shape in core.shapes
    )
    for each in (q, k, v):
        each.requires_grad_(work.with_gradients)
    mask, scale = _mask(core, device), q.shape[-1] ** -0.5

    def written() -> torch.Tensor:
        scores = q @ k.mT * scale
        o: torch.Tensor = (scores if mask is None else scores + mask).softmax(-1) @ v
        return o.transpose(-2, -3).contiguous()

    def fused() -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale).transpose(-2, -3).contiguous()

    def seconds(call: Callable[[], torch.Tensor]) -> float:
        begin = time.perf_counter()
        o = call()
        if work.point.mode == "train":
            torch.autograd.grad(o, [q, k, v], torch.ones_like(o))
        if device != "cpu":
            torch.cuda.synchronize(device)
        return time.perf_counter() - begin

    pairs: list[list[float]] = []
    begin = time.perf_counter()
    while len(pairs) < WARM_CALLS + LEAST_CALLS or time.perf_counter() - begin < CORE_BUDGET_S:
        pairs.append([seconds(written), seconds(fused)])
    return pairs[WARM_CALLS:]


def _mask(core: watch.Core, device: str) -> torch.Tensor | None:
    """Return a mask of a core's scores that is added to them, None without one."""
    if not core.mask:
        return None
    queries, keys = core.shapes[0][-2], core.shapes[1][-2]
    return torch.zeros(queries, keys, dtype=getattr(torch, core.dtype), device=device)


def _settings(model: Model, names: Sequence[str], channel: Channel) -> dict[str, dict[str, str]]:
    """Return for each setting whether the model has it: its status, a reason, and whether it runs the same as it is."""
    now = _fingerprint(model)
    found: dict[str, dict[str, str]] = {}
    for name in names:
        channel.announce(f"setting {name}")
        try:
            changed = impls.build(model, name)
        except impls.Unsupported as reason:
            found[name] = {"status": "unsupported", "detail": str(reason)}
            continue
        is_same = isinstance(changed, Model) and _fingerprint(changed) == now
        found[name] = {"status": "same" if is_same else "ok", "detail": ""}
    return found


def _fingerprint(model: Model) -> list[tuple[str, bool]]:
    return [(core.operator, core.by_sdpa) for core in settings.cores_of(model)]


def _library(model: Model) -> str:
    """Return the library that a model's switch belongs to: the word under which lines to paste are kept."""
    if callable(getattr(model.inner, "set_attn_implementation", None)):
        return "transformers"
    modules = [*model.inner.modules()]
    if any(hasattr(module, "fused_attn") for module in modules):
        return "timm"
    return "torch" if any(isinstance(module, nn.MultiheadAttention) for module in modules) else ""
