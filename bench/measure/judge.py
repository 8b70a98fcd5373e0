"""The judge of a point: a process that computes what is expected there, and compares outputs with it.

It imports the layer, which may be a user's own code, and no implementation. It also measures which rates the device
reaches.
"""

import dataclasses
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

import impls
from bench.machine import facts
from bench.measure import correctness, failure, function, memory, outputs, process_state, reference, workload
from bench.measure.correctness import CheckResult
from bench.measure.devices import device
from bench.measure.failure import Outcome
from bench.measure.forking import Channel, methods, serve
from bench.measure.reference import Check
from bench.measure.speed import DeviceRates
from bench.plan.case import Point
from bench.plan.errors import NOT_FINITE
from bench.plan.layers import layer_of
from bench.plan.work import Roof
from bench.sampling.inputs import AFTERWARDS, PEAKED, TIMED, InputValues, TimedCall

MOST_THREADS = 8
"""The most threads of a reference, which is a few small products, and of a comparison."""

UNPEAKED = f"the layer's own output of larger inputs {NOT_FINITE}, so the peaked input is no larger than a normal one"


class Judge:
    """Serves the requests of a judge for one point; with another seed it computes all anew."""

    def __init__(self) -> None:
        self._work: workload.Workload | None = None
        self._peak = 1.0
        self._checks: dict[str, tuple[InputValues, Check]] = {}
        self._rates: DeviceRates | None = None

    def expect(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Compute what is expected for the inputs in `shifts`; reply with the least work of a call, or why it can't.

        The reply also has the factor of the peaked input, and a remark on what is odd about what is expected. A file
        that is `given` gets weights and values, for another side of a duel.
        """
        point, outcome = Point(**request["point"]), Outcome()
        with failure.caught(outcome, point.device, "the reference failed: "):
            if reason := obstacle(point):
                raise impls.Unsupported(reason)
            channel.announce("reference")
            work = self._workload(point, request["seed"])
            if request.get("given"):
                workload.save(work, request["given"])
            with all_cores(point):
                for name, shift in request["shifts"].items():
                    self._expect(work, name, InputValues(shift, self._peak if name == PEAKED else 1.0))
            memory.give_back()  # the reference's memory is needed by the implementations
            if changes := self._state.changes():
                raise process_state.LeftChanged(f"{changes} (when the layer was made or called)")
            return {
                **dataclasses.asdict(outcome),
                "work": dataclasses.asdict(work.least_work),
                "peak": self._peak,
                "remark": UNPEAKED if self._peak == 1 else "",
            }
        return dataclasses.asdict(outcome)

    def compare(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Compare the output in a file with what is expected; reply with error, tolerance, and why it is incorrect.

        Errors up to the share `allowed` are accepted.
        """
        (_, check), work = self._checks[request["check"]], self._known

        def compared() -> CheckResult:
            tensors = outputs.read(request["outputs"], work.like)
            return correctness.compare(work, check, tensors, request["allowed"])

        return self._reply(check.name, compared)

    def compare_timed(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Replay the timed calls whose outputs are in a file, and compare; reply as to `compare`, with the calls.

        The reply also says why nothing could be expected, if so.
        """
        outcome, work, calls = Outcome(), self._known, list[TimedCall]()
        (_, check), reply = self._checks[AFTERWARDS], dict[str, Any]()

        def compared() -> CheckResult:
            kept = outputs.read_timed(request["outputs"], work)
            calls.extend(call for call, _ in kept)
            return correctness.compare_timed(work, check, kept, request["allowed"])

        with failure.caught(outcome, work.point.device, "the reference failed: "):
            reply = self._reply(TIMED, compared)
        return {**dataclasses.asdict(outcome), **reply, "calls": calls}

    def rates(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Reply with the highest rates of the device in some turns and seconds, 0 if there is no memory for them.

        They are measured on a core if one is given, that of the implementations.
        """
        best = Roof(0.0, 0.0)
        with _measuring(request["core"]):
            self._rates = self._rates or DeviceRates(self._known.point)
            best = self._rates.best(request["turns"], request["least_s"])
        return dataclasses.asdict(best)

    @property
    def _known(self) -> workload.Workload:
        assert self._work is not None, "nothing was expected"
        return self._work

    def _expect(self, work: workload.Workload, name: str, values: InputValues) -> None:
        known, _ = self._checks.get(name, (None, None))
        if known != values:
            check = reference.expect(work, name, values)
            self._checks[name] = values, check

    def _workload(self, point: Point, seed: int) -> workload.Workload:
        if self._work is None or self._work.seed != seed:
            workload.set_up(point)
            self._state = process_state.ProcessState()
            work = workload.make(point, seed)
            with all_cores(point):
                if self._work is None and layer_of(point.layer).is_module:  # the suite's own are known to be functions
                    function.check(work)
                self._work, self._checks, self._peak = work, {}, reference.peak(work)
        return self._work

    def _reply(self, check: str, compared: Callable[[], CheckResult]) -> dict[str, Any]:
        """Return the result of a comparison as JSON; an output that can't be read has a reason alone."""
        try:
            with all_cores(self._known.point):
                result = compared()
        except outputs.Incorrect as incorrect:
            return {"error": None, "tolerance": None, "reason": f"{incorrect} ({check})"}
        error = result.error if math.isfinite(result.error) else None
        return {"error": error, "tolerance": result.tolerance, "reason": result.reason}


def obstacle(point: Point) -> str:
    """Return why this machine can't run the point, empty if it can."""
    if point.timing not in point.kind.timings:
        return f"timing = {point.timing} can't be used on {point.kind.name}; expected {' or '.join(point.kind.timings)}"
    return device(point.device).obstacle


@contextmanager
def all_cores(point: Point) -> Iterator[None]:
    """Compute what is inside with all cores, or MOST_THREADS of them: nothing is timed meanwhile."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(point.threads, min(MOST_THREADS, facts.visible_cores())))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _measuring(core: int | None) -> Iterator[None]:
    """Run what is inside on a core, if one is given; it ends early if there is no memory for it."""
    cores = os.sched_getaffinity(0) if core is not None else set()
    try:
        if core is not None:
            os.sched_setaffinity(0, {core})
        yield
    except Exception as error:
        if not failure.is_out_of_memory(error):
            raise
    finally:
        if core is not None:
            os.sched_setaffinity(0, cores)


def work(channel: Channel) -> None:
    """Serve the requests of a judge until the parent closes the pipe."""
    serve(methods(Judge()), channel)
