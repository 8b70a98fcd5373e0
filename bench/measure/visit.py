"""A visit: one process measures one point, every implementation of it."""

import dataclasses
import gc
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

import impls
from bench.analyse.rounds import Limits, Reading, sample
from bench.measure import ceiling, clock, compilation, dispatch, gate, gpu_state, inspection, memory, sampler, workload
from bench.measure.neighbours import Neighbours
from bench.plan.case import Point

Announce = Callable[[str, str], None]
"""`announce(implementation, stage)` says what the process is about to do, in case it doesn't come back."""

LAYOUT_BYTES = 1 << 16
"""A block of a random size up to this is held during a visit, so that no two processes share a memory layout."""


@dataclass(frozen=True)
class Request:
    """What a visit is asked for; a `thorough` one, a point's first, tries both inputs and inspects a call too.

    `beside` is the process that takes turns with this one, if one does: it is no neighbour.
    """

    point: Point
    implementations: tuple[str, ...]
    baseline: str
    limits: Limits
    seed: int
    thorough: bool
    beside: int | None = None


@dataclass
class Outcome:
    """What a visit found out about one implementation, as the fields of a record."""

    status: str = "ok"
    detail: str = ""
    found: dict[str, Any] = field(default_factory=dict)

    def end(self, status: str, detail: str) -> None:
        """End the case: nothing more is measured of it."""
        self.status, self.detail = status, detail


@dataclass
class Visit:
    """The outcomes of a visit, and the seconds spent in calls of implementations."""

    outcomes: dict[str, Outcome]
    busy_s: float = 0.0

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Count the time spent inside as measuring, warming up or compiling."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.busy_s += time.perf_counter() - start


@dataclass(frozen=True)
class Ready:
    """An implementation that passed the gate and is warm."""

    call: clock.Call
    pace: sampler.Pace


def make(request: Request, announce: Announce) -> Visit:
    """Measure the point's implementations in this process, and return what was found out about each."""
    visit = Visit({name: Outcome() for name in request.implementations})
    standing = prepare(request, visit, announce)
    if standing is not None:
        _take_rounds(standing)
    return visit


def obstacle(point: Point) -> str:
    """Return why this machine can't run the point, empty where it can."""
    if point.device != "cpu":
        if not torch.cuda.is_available():
            return f"no CUDA device: torch {torch.__version__} sees none"
        index = torch.device(point.device).index or 0
        if index >= torch.cuda.device_count():
            return f"no device {point.device}: this machine has {torch.cuda.device_count()} CUDA device(s)"
    elif point.timing != "host":
        return f"timing {point.timing} needs a CUDA device; the CPU has host"
    return ""


@dataclass(frozen=True)
class _Setting:
    """What all implementations of a visit share."""

    request: Request
    visit: Visit
    work: workload.Workload
    trials: tuple[gate.Trial, ...]
    timer: clock.Timer
    announce: Announce

    @property
    def warm_up_s(self) -> float:
        """The longest that one implementation may warm up: its share of the visit's budget."""
        return self.request.limits.budget_s / len(self.request.implementations)


@dataclass(frozen=True)
class Standing:
    """The implementations of a visit that passed the gate and are warm, with all that their turns need."""

    setting: _Setting
    ready: dict[str, Ready]
    rng: random.Random
    neighbours: Neighbours
    layout: torch.Tensor

    def turn(self, name: str) -> Reading:
        """Return one slot of one implementation, to be taken while it is quiet."""
        self.setting.announce(name, "rounds")
        with self.setting.visit.busy():
            return sampler.slot(self.ready[name].call, self.setting.timer, self.ready[name].pace, self.neighbours)

    def fail(self, name: str, error: Exception) -> None:
        """End the case whose turn raised."""
        _end_if_poisoned(self.setting.request.point.device, error)
        self.setting.visit.outcomes[name].end(_status(error), _one_line(error))

    def conclude(self, fastest_s: dict[str, float]) -> None:
        """End the rounds of those that took their turns: a GPU's state is kept, and an impossible time is an error."""
        point = self.setting.request.point
        state = dataclasses.asdict(gpu_state.read(point.device)) if point.device != "cpu" else {}
        for name, call_s in fastest_s.items():
            outcome = self.setting.visit.outcomes[name]
            outcome.found |= state
            impossible = ceiling.objection(point, call_s)
            if impossible:
                outcome.end("error", impossible)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hold what slots are taken in: the point's gradient mode, and neither garbage collection nor compilation."""
        gc.collect()
        gc.disable()
        try:
            with self.setting.work.context(), compilation.frozen():
                yield
        finally:
            gc.enable()


def prepare(request: Request, visit: Visit, announce: Announce) -> Standing | None:
    """Bring the point's implementations through the gate and warm them up; None where there is nobody to time.

    What ends before is told to the visit.
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
        announce(name, "preparation")
        with _caught(visit.outcomes[name], request.point.device):
            prepared = _prepare(name, setting)
            if prepared is not None:
                ready[name] = prepared
    neighbours = Neighbours(request.point.threads, request.beside)
    return Standing(setting, ready, rng, neighbours, layout) if ready else None


def _set_up(request: Request, visit: Visit, announce: Announce) -> _Setting | None:
    """Make the workload and the reference's answers; None where that fails, which every case is told."""
    announce("", "reference")
    try:
        workload.set_up(request.point)
        work = workload.make(request.point)
        trials = gate.trials(work, thorough=request.thorough)
    except Exception as error:
        _end_if_poisoned(request.point.device, error)
        for outcome in visit.outcomes.values():
            outcome.end(_status(error), f"the reference failed: {_one_line(error)}")
        return None
    timer = clock.timer(request.point.device, request.point.timing)
    return _Setting(request, visit, work, trials, timer, announce)


def _prepare(name: str, setting: _Setting) -> Ready | None:
    """Bring one implementation through the gate and warm it up; None where its case has ended."""
    outcome, work, announce = setting.visit.outcomes[name], setting.work, setting.announce
    if impls.compiles(name):
        with suppress(Exception):  # a trouble is the first call's to tell
            compilation.warm_toolchain(work.point.device)
    with compilation.insisted():
        subject = workload.subject(work, name)
    announce(name, "first call")
    with setting.visit.busy(), compilation.insisted():
        answer, compiled, first_s = _first_call(name, subject, setting.trials[0])
    outcome.found |= compiled
    if "graphs" in outcome.found and not outcome.found["graphs"]:
        outcome.end("fallback", "torch.compile compiled no graph: the layer would run eagerly")
        return None
    announce(name, "gate")
    verdict = gate.judge(subject, work, setting.trials, answer)
    outcome.found |= {"error": _finite(verdict.error), "tolerance": verdict.tolerance}
    if verdict.objection:
        outcome.end("incorrect", verdict.objection)
        return None
    call = workload.step(subject, work)
    if setting.request.thorough:
        announce(name, "inspection")
        outcome.found |= _inspect(work, subject, call)
        ran_instead = dispatch.fallback(name, outcome.found["kernels"])
        if ran_instead:
            outcome.end("fallback", ran_instead)
            return None
    announce(name, "warm-up")
    with work.context(), compilation.frozen(), setting.visit.busy():
        seen_s = first_s if len(setting.trials) == 1 and not compiled and work.point.device == "cpu" else None
        pace = sampler.warm_up(call, setting.timer, clock.overhead_s(), setting.warm_up_s, seen_s)
        if work.point.timing != "host":
            outcome.found["host_s"] = clock.host_s(call)
    outcome.found |= {"calls_per_timing": pace.calls, "settled": pace.settled}
    return Ready(call, pace)


def _first_call(name: str, subject: workload.Subject, trial: gate.Trial) -> tuple[gate.Answer, dict[str, Any], float]:
    """Make the first call, the answer to a trial; say what was compiled in it, or should have been, and its seconds."""
    before, cached = compilation.graphs(), compilation.cached_graphs()
    start = time.perf_counter()
    answer = gate.answer(subject, trial)
    elapsed_s = time.perf_counter() - start
    graphs = compilation.graphs() - before
    if graphs:
        from_cache = compilation.cached_graphs() > cached
        return answer, {"graphs": graphs, "compile_s": elapsed_s, "compile_cached": from_cache}, elapsed_s
    return answer, {"graphs": 0} if impls.compiles(name) else {}, elapsed_s


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


def _take_rounds(standing: Standing) -> None:
    request, outcomes = standing.setting.request, standing.setting.visit.outcomes
    turns = {name: partial(standing.turn, name) for name in standing.ready}
    with standing.quiet():
        taken = sample(turns, request.baseline, request.limits, standing.rng, standing.fail)
    standing.conclude({name: min(slots.values_s) for name, slots in taken.items()})
    for name, slots in taken.items():
        if outcomes[name].status == "ok":
            outcomes[name].found["slots"] = slots


@contextmanager
def _caught(outcome: Outcome, device: str) -> Iterator[None]:
    try:
        yield
    except impls.Unsupported as error:
        outcome.end("unsupported", str(error))
    except impls.Unresolved as error:
        outcome.end("error", str(error))
    except Exception as error:
        _end_if_poisoned(device, error)
        outcome.end(_status(error), _one_line(error))


def _end_if_poisoned(device: str, error: Exception) -> None:
    """Let the process end where an error left a GPU unusable for it.

    The engine blames who was at work, and goes on with another process.
    """
    if device == "cpu" or not torch.cuda.is_initialized():
        return
    try:
        torch.cuda.synchronize(device)
    except RuntimeError:
        raise SystemExit(_one_line(error)) from None


def _status(error: Exception) -> str:
    if is_out_of_memory(error):
        return "oom"
    if compilation.gave_up(error):
        return "fallback"
    return "unsupported" if is_not_implemented(error) else "error"


def is_not_implemented(error: Exception) -> bool:
    """Return whether torch says that it has no such kernel here, or no compiler to make one with."""
    said = str(error)
    return isinstance(error, NotImplementedError) or "not implemented for" in said or compilation.is_missing(said)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an exception says that memory ran out: Python's, CUDA's, or the CPU allocator's."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _one_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _finite(value: float) -> float | None:
    return value if -float("inf") < value < float("inf") else None
