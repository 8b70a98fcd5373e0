"""Before the rounds: each implementation is built, brought through the gate, looked at and warmed up."""

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
    dispatch,
    failure,
    gate,
    inspection,
    memory,
    process_state,
    sampler,
    workload,
)
from bench.measure.neighbours import Neighbours
from bench.measure.outcome import Announce, Request, Visit
from bench.measure.turns import Kept, Ready, Setting, Standing, renewing
from bench.plan.case import Point
from bench.plan.names import is_own

LAYOUT_BYTES = 1 << 16
"""A block of a random size up to this is held during a visit, so that no two processes share a memory layout."""


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


def prepare(request: Request, visit: Visit, announce: Announce) -> Standing | None:
    """Bring the point's implementations through the gate and warm them up; None if there is nobody to time.

    How a case ends before that is told to the visit.
    """
    reason = obstacle(request.point)
    if reason:
        for outcome in visit.outcomes.values():
            outcome.end("unsupported", reason)
        return None
    rng = random.Random(request.seed)  # noqa: S311 - an order, not a secret
    layout = torch.empty(rng.randrange(1, LAYOUT_BYTES), dtype=torch.uint8)
    compilation.reset()
    setting = _set_up(request, visit, announce)
    if setting is None:
        return None
    ready: dict[str, Ready] = {}
    for name in rng.sample(request.implementations, len(request.implementations)):
        outcome = visit.outcomes[name]
        outcome.found["seed"] = request.seed
        with failure.caught(outcome, request.point.device):
            prepared = _prepare(name, setting)
            if prepared is not None:
                ready[name] = prepared
    neighbours = Neighbours(request.point.threads, request.beside)
    return Standing(setting, ready, rng, neighbours, layout) if ready else None


def _set_up(request: Request, visit: Visit, announce: Announce) -> Setting | None:
    """Make the workload and the reference's answers; None if that fails, which every case is told."""
    announce("", "reference")
    try:
        workload.set_up(request.point)
        state = process_state.State()
        work = workload.make(request.point, request.seed)
        trials = gate.trials(work, thorough=request.thorough)
        if changed := state.restore(free=process_state.ANY):
            raise process_state.LeftChanged(f"{changed} (when the layer was made or called)")
    except Exception as error:
        is_of_layer = isinstance(error, impls.Unresolved | impls.Unsupported)  # whose words say so
        for outcome in visit.outcomes.values():
            failure.end(outcome, request.point.device, error, "" if is_of_layer else "the reference failed: ")
        return None
    timer = clock.timer(request.point.device, request.point.timing)
    return Setting(request, visit, work, trials, timer, announce)


@contextmanager
def _step(name: str, stage: str, setting: Setting) -> Iterator[None]:
    """Say what is done; raises LeftChanged if it leaves the state of the process changed."""
    setting.announce(name, stage)
    with process_state.kept():
        yield


def _prepare(name: str, setting: Setting) -> Ready | None:
    """Bring one implementation through the gate and warm it up; None if its case has ended."""
    outcome, work = setting.visit.outcomes[name], setting.work
    with _step(name, "preparation", setting), compilation.insisted():
        adapters.check(name)
        if is_own(name) and adapters.compiles(name):
            with suppress(Exception):  # a trouble is the first call's to tell
                compilation.warm_toolchain(work.point.device)
        subject = workload.subject(work, name)
    with _step(name, "first call", setting), setting.visit.busy(), compilation.insisted():
        first, compiled, first_s = _first_call(name, subject, setting.trials[0])
    calls_s = [] if compiled else [first_s]
    outcome.found |= compiled
    if "graphs" in outcome.found and not outcome.found["graphs"]:
        outcome.end("fallback", "torch.compile compiled no graph: the layer would run eagerly")
        return None
    setting.announce(name, "gate")
    answer = partial(_answer, subject, {setting.trials[0].name: first}, calls_s)
    verdict = gate.judge(subject, work, setting.trials, answer)
    outcome.found |= {"error": gate.finite(verdict.error), "tolerance": verdict.tolerance}
    if verdict.objection:
        outcome.end("incorrect", verdict.objection)
        return None
    inputs = workload.Inputs(work)
    call = workload.step(subject, work, inputs)
    if setting.request.thorough:
        with _step(name, "inspection", setting):
            outcome.found |= _inspect(work, subject, call)
        ran_instead = dispatch.fallback(name, outcome.found["kernels"])
        if ran_instead:
            outcome.end("fallback", ran_instead)
            return None
    timer = renewing(setting.timer, inputs)
    with _step(name, "warm-up", setting), work.context(), compilation.frozen(), setting.visit.busy():
        seen_s = calls_s[-1] if calls_s and work.point.device == "cpu" else None
        pace = sampler.warm_up(call, timer, clock.overhead_s(), setting.warm_up_s, seen_s)
        if work.point.timing != "host":
            outcome.found["host_s"] = clock.host_s(call)
    outcome.found |= {"calls_per_timing": pace.calls, "settled": pace.settled}
    return Ready(subject, inputs, call, timer, pace, Kept(first))


def _first_call(name: str, subject: workload.Subject, trial: gate.Trial) -> tuple[gate.Answer, dict[str, Any], float]:
    """Make the first call, the answer to a trial; say what was compiled in it, or should have been, and its seconds."""
    before, cached = compilation.graphs(), compilation.cached_graphs()
    x = trial.x.clone()
    start = perf_counter()
    answer = gate.ask(subject, x, trial.direction)
    elapsed_s = perf_counter() - start
    graphs = compilation.graphs() - before
    if graphs:
        from_cache = compilation.cached_graphs() > cached
        return answer, {"graphs": graphs, "compile_s": elapsed_s, "compile_cached": from_cache}, elapsed_s
    return answer, {"graphs": 0} if adapters.compiles(name) else {}, elapsed_s


def _answer(
    subject: workload.Subject, known: dict[str, gate.Answer], calls_s: list[float], trial: gate.Trial
) -> gate.Answer:
    """Return the answer to a trial, a known one or a new one, whose seconds are added to `calls_s`."""
    if trial.name in known:
        return known[trial.name]
    x = trial.x.clone()
    with process_state.kept():
        start = perf_counter()
        answer = gate.ask(subject, x, trial.direction)
        calls_s.append(perf_counter() - start)
    return answer


def _inspect(work: workload.Workload, subject: workload.Subject, call: clock.Call) -> dict[str, Any]:
    with work.context():
        seen = inspection.look(call, work.point.device)
    found: dict[str, Any] = {
        "kernels": seen.kernels,
        "peak_bytes": seen.memory.peak_bytes,
        "reserved_bytes": seen.memory.reserved_bytes,
    }
    if work.with_gradients:
        x = work.x.detach().requires_grad_()
        held = iter([x, *subject.layer.parameters()])
        with work.context():
            found["saved_bytes"] = memory.saved_bytes(lambda: subject.function(x), held)
    return found
