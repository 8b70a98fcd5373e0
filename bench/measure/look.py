"""A look at a model: where its attention is, which kernels run there, and its share of the time.

A call is looked at in three ways: plainly under the profiler, under a dispatch mode that sees operators with their
shapes, and under hooks that tell the profiler which layer begins. The kernels of all three must agree.
"""

import copy
import dataclasses
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import profile

import impls
from bench.measure import core_times, function, inspection, user_code, workload
from bench.measure.devices import Device, device
from bench.measure.forking import Channel
from bench.plan import layers
from bench.plan.case import Point
from bench.plan.device import CPU, HOST
from impls.catalogue import parse
from impls.lookup import check
from impls.modules import flow, proof, watch
from impls.modules.core import counts_of
from impls.modules.counted import Counts
from impls.modules.wrapper import Wrapper, wrapped

CALLS, LEAST_CALLS, BUDGET_S = 7, 3, 4.0
"""The profiled calls of a look, and how many are made after BUDGET_S."""

WARM_CALLS = 2
"""Calls before all others: the first one is slower."""

WHOLE = re.compile(f"{watch.FUSED.pattern}|{watch.WHOLE.pattern}")
"""The operators that compute a core or a layer in one."""


FLAG = re.compile(r"((use|enable|with)_\w*)?(flash|sdpa|fused|memory_efficient|xformers)")
"""The names of flags by which layers choose how they compute attention."""

SET_HERE = "fused_attn"
"""The flag that settings set."""

OUTPUT = ".output"
"""The ending of the file with the output that belongs to saved weights."""

COMPARED = 2
"""The items with which two modules are compared in float64."""


def look(request: Mapping[str, Any], channel: Channel) -> dict[str, Any]:
    """Look at the model of a point; reply with its cores, the times of profiled calls, and what settings it has.

    Raises `impls.Unresolved` if the model can't be made or called, `impls.Unsupported` if it has no attention or
    returns other values for the same input.
    """
    point = Point(**request["point"])
    workload.set_up(point)
    channel.announce("model")
    work = workload.make(point, request["seed"])
    model = wrapped(work.layer, tuple(shape[1:] for shape in work.shapes))
    call, on = workload.step(workload.Subject(model, model), work), device(point.device)
    with work.gradient_mode():
        channel.announce("first call")
        function.check(work)
        for _ in range(WARM_CALLS):
            call()
        channel.announce("look")
        plain = _kernels(call, on)
        with watch.watched(model) as seen:
            observed = _kernels(call, on)
        if not seen.cores:
            raise impls.Unsupported("no attention was found in the model: no fused operator, no product with a softmax")
        channel.announce("profile")
        calls = [*_profiled(call, model, seen, on)]
        tried = _settings(model, request["settings"], channel)
        channel.announce("core")
        is_switched = tried.get("sdpa", {}).get("status") in ("ok", "same")
        cores, written = (seen.cores, {}) if is_switched else _beside_sdpa(seen, work)
    return {
        "written": written,
        "cores": [dataclasses.asdict(core) for core in cores],
        "calls": calls,
        "kernels": plain,
        "observed_kernels": observed,
        "settings": tried,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "item": list(model.items[0]),
        "library": _library(model),
        "flags": _flags(model.inner.get_submodule(layer) for layer in {core.layer for core in cores}),
    }


def shape(request: Mapping[str, Any], channel: Channel) -> dict[str, int]:
    """Return the columns of a module's largest core, or those of its input if no core is found.

    Raises `impls.Unresolved` if the module can't be made or called.
    """
    point = Point(**request["point"])
    channel.announce("model")
    model, (item, *_) = workload.shown(point)
    channel.announce("first call")
    with torch.inference_mode():
        seen = watch.cores(model, *model.zeros())
    if not seen:
        tokens = max(1, math.prod(item[:-1]))
        return {"num_tokens": tokens, "token_len": item[-1], "channels": item[-1], "num_heads": 1}
    largest = max(seen, key=lambda core: math.prod(core.shapes[0]))
    return layers.of_core(dataclasses.asdict(largest), point.layer)


def described(request: Mapping[str, Any], channel: Channel) -> dict[str, Any]:
    """Return the shapes of a module's input, output and weights, and the code that it and an implementation bring in.

    Of each package that is its file, its version, and a digest of its sources. Raises as `workload.make` does.
    """
    channel.announce("model")
    before, point = {*sys.modules}, Point(**{**request["point"], "device": CPU.name})
    workload.set_up(point)
    work = workload.make(point)
    bases = [parse(name).base for name in (point.layer, request["implementation"])]
    check(request["implementation"])
    named = {base.partition(":")[0].partition(".")[0] for base in bases}
    modules = user_code.imported_since(before, named)
    weights = [(name, [*tensor.shape]) for name, tensor in workload.weights(work.layer).items()]
    return {
        "input": " and ".join(str([*shape]) for shape in work.shapes),
        "output": str([*work.direction.shape]),
        "weights": weights,
        "heads": sorted({heads for module in work.layer.modules() for heads in watch.numbers_of_heads(module)}),
        "modules": {name: (*of, getattr(sys.modules[name], "__version__", "")) for name, of in modules.items()},
    }


def computed(request: Mapping[str, Any], channel: Channel) -> dict[str, Any]:
    """Write the weights and values of a module into the file `path`, and what it computes of them beside it."""
    work, path = _on_cpu(request, channel), Path(request["path"])
    path.write_bytes(workload.saved(work))
    torch.save(_in_float64(work.layer, work), path.with_suffix(OUTPUT))
    return {}


def matched(request: Mapping[str, Any], channel: Channel) -> dict[str, Any]:
    """Look for the first of some `ways` to take the weights in `path` with which a module computes the same.

    Return its number, None without one; how far the best one is off, in units of the largest value; and how many were
    tried.
    """
    work, path = _on_cpu(request, channel), Path(request["path"])
    expected, best = torch.load(path.with_suffix(OUTPUT), weights_only=True), math.inf
    with path.open("rb") as file:
        for number, sources in enumerate(request["ways"]):
            channel.announce("weights")
            error = _error(work, workload.Given(file.fileno(), sources), expected)
            best = min(best, error)
            if error <= function.SAME:
                return {"number": number, "error": error, "tried": number + 1}
    return {"number": None, "error": best if math.isfinite(best) else None, "tried": len(request["ways"])}


def _on_cpu(request: Mapping[str, Any], channel: Channel) -> workload.Workload:
    """Return the workload of a point on the CPU, in float32."""
    channel.announce("model")
    point = Point(**{**request["point"], "device": CPU.name, "dtype": "float32"})
    workload.set_up(point)
    return workload.make(point)


def _error(work: workload.Workload, given: workload.Given, expected: torch.Tensor) -> float:
    """Return how far a layer with these weights is off, relative to the largest value; infinity for another shape."""
    layer = copy.deepcopy(work.layer)
    values = workload.load(layer, given)["values"]
    y = _in_float64(layer, dataclasses.replace(work, values=values))
    if y.shape != expected.shape:
        return math.inf
    error = float((y - expected).abs().max()) / float(expected.abs().max())
    return math.inf if math.isnan(error) else error


def _in_float64(layer: nn.Module, work: workload.Workload) -> torch.Tensor:
    xs = work.items(COMPARED, torch.float64)
    with torch.no_grad():
        y: torch.Tensor = copy.deepcopy(layer).to(torch.float64)(*xs)
        return y.double()


def _beside_sdpa(seen: watch.Watch, work: workload.Workload) -> tuple[list[watch.Core], dict[str, Any]]:
    """Return the cores with what `F.scaled_dot_product_attention` can express of them, and the times of both.

    The times are those of one core of each kind, by its layer.
    """
    findings = {id(trace): proof.found(trace) for trace in seen.traces.values()}
    own = {number: findings[id(trace)] for number, trace in seen.traces.items()}
    cores = [
        dataclasses.replace(core, **_known(own[number])) if number in own else core
        for number, core in enumerate(seen.cores)
    ]
    kinds = {dataclasses.replace(core, layer=""): number for number, core in reversed([*enumerate(cores)])}
    proposals = {cores[number].layer: own[number].proposal for number in kinds.values() if number in own}
    return cores, {layer: core_times.beside_sdpa(each, work) for layer, each in proposals.items() if each}


def _known(of: proof.Proof) -> dict[str, Any]:
    """Return the fields of a core that a proof gives."""
    return {"proposal": of.lines, "obstacle": of.obstacle, "weights_are_used": of.weights_are_used}


def _kernels(call: Callable[[], object], on: Device) -> list[str]:
    """Return the operators of a call that can be part of attention; products have several names for the same."""
    with profile(activities=on.activities) as profiler:
        call()
    names = inspection.kernels(profiler, on.kind)
    return sorted({flow.KINDS.get(name, name) for name in names if name in flow.KINDS or WHOLE.search(name)})


def _profiled(call: Callable[[], object], model: Wrapper, seen: watch.Watch, on: Device) -> Iterator[dict[str, Any]]:
    """Yield the seconds of profiled calls, each beside those of a plain call before it."""
    timed, begin = on.timer(HOST), time.perf_counter()
    for number in range(CALLS):
        if number >= LEAST_CALLS and time.perf_counter() - begin > BUDGET_S:
            return
        yield {"plain_s": timed(call, 1).call_s, **core_times.profiled(call, model, seen, on)}


def _settings(model: Wrapper, names: Sequence[str], channel: Channel) -> dict[str, dict[str, str]]:
    """Return for each setting whether the model has it: its status, a reason, and whether it runs the same as it is."""
    now = _fingerprint(model)
    tried: dict[str, dict[str, str]] = {}
    for name in names:
        channel.announce(f"setting {name}")
        try:
            changed = impls.build(model, name)
            is_same = isinstance(changed, Wrapper) and _fingerprint(changed) == now
            tried[name] = {"status": "same" if is_same else "ok", "detail": ""}
        except impls.Unsupported as reason:
            tried[name] = {"status": "unsupported", "detail": str(reason)}
    return tried


def _fingerprint(model: Wrapper) -> Counts:
    return counts_of(model)


def _flags(layers: Iterable[nn.Module]) -> list[str]:
    """Return the flags of layers that no setting sets, as `SABlock.use_flash_attention = False`."""
    named = ((type(each).__name__, name, value) for each in layers for name, value in vars(each).items())
    flags = [each for each in named if type(each[2]) is bool and FLAG.match(each[1]) and each[1] != SET_HERE]
    return list(dict.fromkeys(f"{layer}.{name} = {value}" for layer, name, value in flags))


def _library(model: Wrapper) -> str:
    """Return the library that a model's switch belongs to: the word under which lines to paste are kept."""
    if callable(getattr(model.inner, "set_attn_implementation", None)):
        return "transformers"
    modules = [*model.inner.modules()]
    if any(hasattr(module, "fused_attn") for module in modules):
        return "timm"
    return "torch" if any(isinstance(module, nn.MultiheadAttention) for module in modules) else ""
