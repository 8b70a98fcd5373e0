"""Look at a model: where its attention is, which kernels run there, and its share of the time.

A call is traced as a graph in which cores are found. The profiler measures their shares of the graph's time. A plain
call of the model is timed beside each profiled one.
"""

import dataclasses
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import torch
from torch.profiler import ProfilerActivity, profile

import impls
from bench.measure import function, inspection, shares, subjects, workload
from bench.measure.devices import Device, device
from bench.measure.forking import Channel
from bench.measure.layer import counted_with_values, made
from bench.modules.core import wrapped
from bench.modules.graph import cores
from bench.modules.graph.tracing import Untraceable
from bench.modules.inputs import is_function
from bench.modules.switches import switch_of
from bench.modules.wrapper import Wrapper
from bench.plan.case import Point
from bench.plan.core import Core, Softmax
from bench.plan.device import CPU, HOST
from bench.plan.layers.module import of_core
from bench.sampling.requests import Look, Shape
from impls.catalogue import name_of

T = TypeVar("T", Core, Softmax)

CALLS, LEAST_CALLS, BUDGET_S = 7, 3, 4.0
"""The profiled calls of a look; after BUDGET_S seconds only LEAST_CALLS are made."""

WARM_CALLS = 2
"""The calls before all others, because the first one is slower."""

ATTENTION = re.compile(r"\w*attention\w*|_transformer_encoder_layer_fwd|_?softmax")
"""The operators that show how attention is computed."""

PRODUCTS = re.compile(r"bmm|baddbmm|addmm|mm|linear")
"""Further operators by which two attention settings differ."""

WHOLE = ("_native_multi_head_attention", "_transformer_encoder_layer_fwd")
"""The operators of the fast paths of torch's own modules, which compute a whole layer."""

NO_SOFTMAX = "no attention was found, because the model has no softmax and no attention operator"


def look(request: Look, channel: Channel) -> dict[str, Any]:
    """Look at the model of a point; return its cores, the times of profiled calls, and the settings that it has.

    Raises `impls.Unresolved` if the model can't be made or called, `impls.Unsupported` if it has no softmax or returns
    other values for the same input.
    """
    point = request.point
    workload.set_up(point)
    channel.announce("model")
    work = workload.make(point, request.seed)
    point, model = work.point, wrapped(work.layer, tuple(shape[1:] for shape in work.shapes))
    call, on = subjects.step(subjects.Subject(model, model), work), device(point.device)
    with work.gradient_mode():
        channel.announce("first call")
        function.check(work)
        for _ in range(WARM_CALLS):
            call()
        channel.announce("graph")
        of, untraced = _found(model, work)
        plain = _kernels(call, on)
        if of and not (of.cores or of.unknown or plain):
            raise impls.Unsupported(NO_SOFTMAX)
        channel.announce("profile")
        graph = subjects.step(subjects.Subject(model, shares.labelled(of)), work) if of else None
        timed = [*_profiled(call, graph, of, on)]
        tried = _settings(model, work, request.settings, channel)
    return {
        "cores": [_in_model(site.core) for site in of.cores] if of else [],
        "others": [_in_model(each.softmax) for each in of.unknown] if of else [],
        "untraced": untraced,
        "calls": timed,
        "kernels": plain,
        "has_whole": any(each in WHOLE for each in plain),
        "settings": tried,
        "paste": dict(switch.lines) if (switch := switch_of(model)) else {},
    }


def _found(model: Wrapper, work: workload.Workload) -> tuple[cores.Found | None, str]:
    """Return the cores in a model's graph, or None and the reason why it can't be traced."""
    try:
        return cores.look(model, work.inputs()), ""
    except Untraceable as reason:
        return None, str(reason)


def _in_model(of: T) -> T:
    """Return a core or softmax with its layer's path relative to the module in the wrapper."""
    return msgspec.structs.replace(of, layer=of.layer.removeprefix("inner").removeprefix("."))


def shape(request: Shape, channel: Channel) -> dict[str, int]:
    """Return the columns of a module's largest core, or of its input if no core is found.

    If its name gives the input, they include the input's batch.
    Raises `impls.Unresolved` if the module can't be made or called.
    """
    point = request.point
    channel.announce("model")
    model = _shown(point)
    channel.announce("first call")
    try:
        seen = cores.look(model, model.zeros()).cores
    except Untraceable:
        seen = ()
    given = name_of(point.layer).input
    batch = model.batch if is_function(given) else int(given.partition("x")[0] or 0)
    return {**_columns(seen, model, point), **({"batch": batch} if batch else {})}


def _shown(point: Point) -> Wrapper:
    """Return the module of a point on the CPU after one call; raises as `workload.make` does."""
    workload.set_up(dataclasses.replace(point, device=CPU.name))
    layer, shapes = made(point)
    items = tuple(shape[1:] for shape in shapes)
    counted_with_values(point, layer.eval(), tuple(torch.zeros(1, *item) for item in items))
    return wrapped(layer, items)


def _columns(seen: Sequence[cores.Site], model: Wrapper, point: Point) -> dict[str, int]:
    """Return the columns of the largest core that was seen, or of the module's input without one."""
    if seen:
        largest = max((site.core for site in seen), key=lambda core: math.prod(core.shapes[0]))
        return of_core(largest, point.layer)
    *tokens, width = model.items[0]
    return {"num_tokens": max(1, math.prod(tokens)), "token_len": width, "channels": width, "num_heads": 1}


def _kernels(call: Callable[[], object], on: Device) -> list[str]:
    """Return the operators of a call that show how attention is computed."""
    with profile(activities=on.activities) as profiler:
        call()
    return sorted(name for name in inspection.kernels(profiler.events() or [], on.kind) if ATTENTION.fullmatch(name))


def _profiled(
    call: Callable[[], object], graph: Callable[[], object] | None, of: cores.Found | None, on: Device
) -> Iterator[dict[str, Any]]:
    """Yield the seconds of plain calls, each with the times of a profiled call of the graph, if there is one."""
    timed, begin = on.timer(HOST), time.perf_counter()
    for _ in range(WARM_CALLS):
        (graph or call)()
    for number in range(CALLS):
        if number >= LEAST_CALLS and time.perf_counter() - begin > BUDGET_S:
            return
        yield {"plain_s": timed(call, 1).call_s, **(shares.profiled(graph, of, on) if graph and of else {})}


def _settings(
    model: Wrapper, work: workload.Workload, names: Sequence[str], channel: Channel
) -> dict[str, dict[str, str]]:
    """Return for each setting its status in the model, a reason, and how the core is replaced.

    The status is `same` if it runs the same operators as the unchanged model.
    """
    now = _fingerprint(model, work)
    tried: dict[str, dict[str, str]] = {}
    for name in names:
        channel.announce(f"setting {name}")
        try:
            changed = impls.build(model, name)
            by = str(getattr(changed, "adapted_by", ""))
            is_same = isinstance(changed, Wrapper) and _fingerprint(changed, work) == now
            tried[name] = {"status": "same" if is_same else "ok", "detail": "", "by": by}
        except impls.Unsupported as reason:
            tried[name] = {"status": "unsupported", "detail": str(reason), "by": ""}
    return tried


def _fingerprint(model: Wrapper, work: workload.Workload) -> Counter[str]:
    """Return how often a call on one item runs each operator by which attention settings differ."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        model(*(each[:1] for each in work.inputs()))
    names = (event.name.removeprefix("aten::") for event in profiler.events() or [])
    return Counter(name for name in names if ATTENTION.fullmatch(name) or PRODUCTS.fullmatch(name))
