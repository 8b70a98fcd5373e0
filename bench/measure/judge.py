"""The judge of a point: a process that computes the reference, and compares outputs with it.

It imports the layer, which may be a user's own code, and no implementation. It also measures the rates of the device.
"""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

import impls
from bench.machine import facts
from bench.measure import correctness, failure, function, memory, outputs, process_state, reference, workload
from bench.measure.correctness import CheckResult
from bench.measure.devices import device
from bench.measure.forking import Channel, Serve, serve
from bench.measure.reference import Check
from bench.measure.speed import DeviceRates
from bench.plan.case import Point
from bench.plan.errors import NOT_FINITE
from bench.plan.layers import layer_of
from bench.plan.work import Roof
from bench.sampling.inputs import AFTERWARDS, PEAKED, TIMED, InputValues, TimedCall
from bench.sampling.requests import Compare, Compared, CompareTimed, Expect, Expected, Outcome, Rates

MOST_THREADS = 8
"""The most threads of a reference or comparison, which is small work."""

UNPEAKED = f"the layer's own output {NOT_FINITE} for larger inputs, so the peaked input is as large as the normal one"


class Judge:
    """Serves a judge's requests for one point; a new seed makes it compute everything again."""

    def __init__(self) -> None:
        self._work: workload.Workload | None = None
        self._peak = 1.0
        self._checks: dict[str, tuple[InputValues, Check]] = {}
        self._rates: DeviceRates | None = None

    def expect(self, request: Expect, channel: Channel) -> Expected | Outcome:
        """Compute the reference; return the least work of a call and the peaked factor, or the reason for a failure."""
        point, outcome = request.point, Outcome()
        with failure.caught(outcome, point.device, "the reference failed: "):
            if reason := obstacle(point):
                raise impls.Unsupported(reason)
            channel.announce("reference")
            work = self._workload(point, request.seed)
            if request.given:
                workload.save(work, request.given)
            with all_cores(point):
                for name, shift in request.shifts.items():
                    self._expect(work, name, InputValues(shift, self._peak if name == PEAKED else 1.0))
            memory.give_back()  # the implementations need the memory
            if changes := self._state.changes():
                raise process_state.LeftChanged(f"{changes} (when the layer was made or called)")
            remarks = UNPEAKED if self._peak == 1 else "", getattr(work.layer, "column_remarks", "")
            return Expected(work.least_work, self._peak, "; ".join(filter(None, remarks)))
        return outcome

    def compare(self, request: Compare, _channel: Channel) -> Compared:
        """Compare the output in a file with the reference."""
        (_, check), work = self._checks[request.check], self._known

        def compared() -> CheckResult:
            return correctness.compare(work, check, outputs.read(request.outputs, work.like))

        return self._compared(check.name, compared)

    def compare_timed(self, request: CompareTimed, _channel: Channel) -> Compared | Outcome:
        """Replay the timed calls whose outputs are in a file, and compare them; or return why the replay failed."""
        outcome, work, calls = Outcome(), self._known, list[TimedCall]()
        _, check = self._checks[AFTERWARDS]

        def compared() -> CheckResult:
            kept = outputs.read_timed(request.outputs, work)
            calls.extend(call for call, _ in kept)
            return correctness.compare_timed(work, check, kept)

        with failure.caught(outcome, work.point.device, "the reference failed: "):
            result = self._compared(TIMED, compared)
            result.calls = calls
            return result
        return outcome

    def rates(self, request: Rates, _channel: Channel) -> Roof:
        """Return the highest rates of the device, 0 if there is no memory for them."""
        with _measuring(request.core):
            self._rates = self._rates or DeviceRates(self._known.point)
            return self._rates.best(request.turns, request.least_s)
        return Roof(0.0, 0.0)

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

    def _compared(self, check: str, compared: Callable[[], CheckResult]) -> Compared:
        """Return the result of a comparison; for an output that can't be read it has only a reason."""
        try:
            with all_cores(self._known.point):
                result = compared()
        except outputs.Incorrect as incorrect:
            return Compared(None, None, f"{incorrect} ({check})")
        return Compared(result.error if math.isfinite(result.error) else None, result.tolerance, result.reason)


def obstacle(point: Point) -> str:
    """Return the reason why this machine can't run the point, empty if it can."""
    if point.timing not in point.kind.timings:
        return f"timing = {point.timing} can't be used on {point.kind.name}; expected {' or '.join(point.kind.timings)}"
    return device(point.device).obstacle


@contextmanager
def all_cores(point: Point) -> Iterator[None]:
    """Use more threads inside, up to MOST_THREADS, because nothing is timed meanwhile."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(point.threads, min(MOST_THREADS, facts.visible_cores())))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _measuring(core: int | None) -> Iterator[None]:
    """Run the block on one core, if given, and end it silently if memory runs out."""
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
    judge = Judge()
    served: dict[type, Serve] = {Expect: judge.expect, Compare: judge.compare}
    served |= {CompareTimed: judge.compare_timed, Rates: judge.rates}
    serve(served, channel)
