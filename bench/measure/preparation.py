"""Preparation before the rounds: each implementation is built, checked for correctness, inspected and warmed up."""

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import perf_counter
from typing import Any

import torch

import impls
from bench.measure import (
    adapters,
    clock,
    compilation,
    correctness,
    dispatch,
    failure,
    inspection,
    memory,
    process_state,
    sampler,
    workload,
)
from bench.measure.interference import Interference
from bench.measure.outcome import Announce, Request, Visit
from bench.measure.turns import OutputBuffer, Prepared, PreparedPoint, VisitContext, renewing
from bench.plan.case import Point
from bench.plan.names import is_own

LAYOUT_BYTES = 1 << 16
"""A block of random size up to this is held during a visit, so that processes have different memory layouts."""


def obstacle(point: Point) -> str:
    """Return why this machine can't run the point, empty if it can."""
    if point.device != "cpu":
        if not torch.cuda.is_available():
            return f"no CUDA device: torch {torch.__version__} sees none"
        index = torch.device(point.device).index or 0
        if index >= torch.cuda.device_count():
            return f"no device {point.device}: this machine has {torch.cuda.device_count()} CUDA device(s)"
    elif point.timing != "host":
        return f"timing {point.timing} needs a CUDA device; the CPU has host"
    return ""


def prepare(request: Request, visit: Visit, announce: Announce) -> PreparedPoint | None:
    """Check the point's implementations and warm them up; None if none is left to time.

    The outcome of a case that ends here is recorded in the visit.
    """
    reason = obstacle(request.point)
    if reason:
        for outcome in visit.outcomes.values():
            outcome.end("unsupported", reason)
        return None
    rng = random.Random(request.seed)  # noqa: S311 - an order, not a secret
    layout = torch.empty(rng.randrange(1, LAYOUT_BYTES), dtype=torch.uint8)
    compilation.reset()
    context = _set_up(request, visit, announce)
    if context is None:
        return None
    implementations: dict[str, Prepared] = {}
    for name in rng.sample(request.implementations, len(request.implementations)):
        outcome = visit.outcomes[name]
        outcome.metrics["seed"] = request.seed
        with failure.caught(outcome, request.point.device):
            prepared = _prepare(name, context)
            if prepared is not None:
                implementations[name] = prepared
    interference = Interference(request.point.threads, request.beside)
    return PreparedPoint(context, implementations, rng, interference, layout) if implementations else None


def _set_up(request: Request, visit: Visit, announce: Announce) -> VisitContext | None:
    """Make the workload and the reference's results; None if that fails, which ends every case."""
    announce("", "reference")
    try:
        workload.set_up(request.point)
        state = process_state.State()
        work = workload.make(request.point, request.seed)
        check_inputs = correctness.check_inputs(work, thorough=request.thorough)
        if changed := state.restore(free=process_state.ANY):
            raise process_state.LeftChanged(f"{changed} (when the layer was made or called)")
    except Exception as error:
        is_of_layer = isinstance(error, impls.Unresolved | impls.Unsupported)  # its message names the layer
        for outcome in visit.outcomes.values():
            failure.end(outcome, request.point.device, error, "" if is_of_layer else "the reference failed: ")
        return None
    timer = clock.timer(request.point.device, request.point.timing)
    return VisitContext(request, visit, work, check_inputs, timer, announce)


@contextmanager
def _step(name: str, stage: str, context: VisitContext) -> Iterator[None]:
    """Announce a stage; raises LeftChanged if it leaves the state of the process changed."""
    context.announce(name, stage)
    with process_state.kept():
        yield


def _prepare(name: str, context: VisitContext) -> Prepared | None:
    """Check one implementation and warm it up; None if its case has ended."""
    outcome, work = context.visit.outcomes[name], context.work
    with _step(name, "preparation", context), compilation.no_eager_fallback():
        adapters.check(name)
        if is_own(name) and adapters.compiles(name):
            with suppress(Exception):  # the first call will raise the same error
                compilation.warm_toolchain(work.point.device)
        subject = workload.subject(work, name)
    with _step(name, "first call", context), context.visit.busy(), compilation.no_eager_fallback():
        first, compilation_metrics, first_s = _first_call(name, subject, context.check_inputs[0])
    calls_s = [] if compilation_metrics else [first_s]
    outcome.metrics |= compilation_metrics
    if "graphs" in outcome.metrics and not outcome.metrics["graphs"]:
        outcome.end("fallback", "torch.compile compiled no graph: the layer would run eagerly")
        return None
    context.announce(name, "correctness check")
    output_for = partial(_output_for, subject, {context.check_inputs[0].name: first}, calls_s)
    result = correctness.check(subject, work, context.check_inputs, output_for)
    outcome.metrics |= {"error": correctness.finite(result.error), "tolerance": result.tolerance}
    if result.reason:
        outcome.end("incorrect", result.reason)
        return None
    inputs = workload.Inputs(work)
    call = workload.step(subject, work, inputs)
    if context.request.thorough:
        with _step(name, "inspection", context):
            outcome.metrics |= _inspect(work, subject, call)
        fallback = dispatch.fallback(name, outcome.metrics["kernels"])
        if fallback:
            outcome.end("fallback", fallback)
            return None
    timer = renewing(context.timer, inputs)
    with _step(name, "warm-up", context), work.gradient_mode(), compilation.frozen(), context.visit.busy():
        previous_s = calls_s[-1] if calls_s and work.point.device == "cpu" else None
        pace = sampler.warm_up(call, timer, clock.overhead_s(), context.warm_up_s, previous_s)
        if work.point.timing != "host":
            outcome.metrics["host_s"] = clock.host_s(call)
    outcome.metrics |= {"calls_per_timing": pace.calls, "settled": pace.settled}
    return Prepared(subject, inputs, call, timer, pace, OutputBuffer(first))


def _first_call(
    name: str, subject: workload.Subject, one: correctness.CheckInput
) -> tuple[correctness.Output, dict[str, Any], float]:
    """Make the first call; return its output, the metrics of its compilation (empty if none), and its seconds."""
    before, cached = compilation.graphs(), compilation.cached_graphs()
    x = one.x.clone()
    start = perf_counter()
    output = correctness.compute(subject, x, one.direction)
    elapsed_s = perf_counter() - start
    graphs = compilation.graphs() - before
    if graphs:
        from_cache = compilation.cached_graphs() > cached
        return output, {"graphs": graphs, "compile_s": elapsed_s, "compile_cached": from_cache}, elapsed_s
    return output, {"graphs": 0} if adapters.compiles(name) else {}, elapsed_s


def _output_for(
    subject: workload.Subject, known: dict[str, correctness.Output], calls_s: list[float], one: correctness.CheckInput
) -> correctness.Output:
    """Return the output for an input, a known one or a new one; the seconds of a new one are added to `calls_s`."""
    if one.name in known:
        return known[one.name]
    x = one.x.clone()
    with process_state.kept():
        start = perf_counter()
        output = correctness.compute(subject, x, one.direction)
        calls_s.append(perf_counter() - start)
    return output


def _inspect(work: workload.Workload, subject: workload.Subject, call: clock.Call) -> dict[str, Any]:
    with work.gradient_mode():
        inspected = inspection.inspect(call, work.point.device)
    metrics: dict[str, Any] = {
        "kernels": inspected.kernels,
        "peak_bytes": inspected.memory.peak_bytes,
        "reserved_bytes": inspected.memory.reserved_bytes,
    }
    if work.with_gradients:
        x = work.x.detach().requires_grad_()
        held = iter([x, *subject.layer.parameters()])
        with work.gradient_mode():
            metrics["saved_bytes"] = memory.saved_bytes(lambda: subject.function(x), held)
    return metrics
