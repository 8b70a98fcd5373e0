"""The judge: a process that makes the expected outputs of a point, and compares the implementations' with them.

It imports no code of an implementation. It also measures which rates the device reaches, and how fast it is now.
"""

import dataclasses
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch import Tensor

import impls
from bench.machine import facts
from bench.measure import correctness, failure, function, memory, outputs, process_state, reference, workload
from bench.measure.correctness import CheckResult
from bench.measure.devices import DeviceRates, SpeedProbe
from bench.measure.failure import Outcome
from bench.measure.forking import Channel, serve
from bench.plan.case import Point
from bench.plan.work import Roof
from bench.sampling.inputs import AFTERWARDS, PEAKED, TIMED, InputValues, Part, TimedCall

MOST_THREADS = 8
"""The most threads of a reference, which is a few small products."""


class Judge:
    """Serves the requests of a judge for one point; with another seed it makes all anew."""

    def __init__(self) -> None:
        self._work: workload.Workload | None = None
        self._peak = 1.0
        self._checks: dict[str, tuple[InputValues, reference.Check]] = {}
        self._rates: DeviceRates | None = None
        self._probe: SpeedProbe | None = None

    def expect(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Make the expected results for the inputs in `shifts`; reply with the least work of a call, or why it can't.

        The reply also has the factor of the peaked input. What was made for an earlier request is made once only.
        If the request has a path `save`, the weights and values are written there, for another side of a duel.
        """
        point, outcome = Point(**request["point"]), Outcome()
        with failure.caught(outcome, point.device, "the reference failed: "):
            if reason := obstacle(point):
                raise impls.Unsupported(reason)
            channel.announce("reference")
            work = self._workload(point, request["seed"])
            if request.get("save") and not Path(request["save"]).exists():
                workload.save(work, Path(request["save"]))
            with _all_cores(point):
                for name, shift in request["shifts"].items():
                    values = InputValues(shift, self._peak if name == PEAKED else 1.0)
                    if name not in self._checks or self._checks[name][0] != values:
                        self._checks[name] = values, reference.expect(work, name, values)
            memory.give_back()  # the reference's memory is needed by the implementations
            if changes := self._state.changes(free=process_state.ANY):
                raise process_state.LeftChanged(f"{changes} (when the layer was made or called)")
            return {**dataclasses.asdict(outcome), "work": dataclasses.asdict(work.least_work), "peak": self._peak}
        return dataclasses.asdict(outcome)

    def compare(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Compare the output in a file with what is expected; reply with error, tolerance, and why it is incorrect."""
        work, (_, check) = self._made, self._checks[request["check"]]
        path, like = Path(request["path"]), _like(work)
        return _reply(check.name, lambda: correctness.compare(work, check, outputs.read(path, like)))

    def compare_timed(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Compare the outputs of timed calls in a file, whole ones and then items; reply as to `compare`.

        `wholes` and `parts` say which calls and items, and `numbers` is the key of the numbers of their inputs.
        """
        work, (_, check) = self._made, self._checks[AFTERWARDS]
        wholes, parts = [TimedCall(*call) for call in request["wholes"]], [Part(*part) for part in request["parts"]]
        like = _like(work)
        of_part = [tensor[0] for tensor in (like[: work.by_item] if work.point.mode in workload.TRAINED else like[:1])]

        def compared() -> CheckResult:
            expected = [*like * len(wholes), *of_part * len(parts)]
            tensors = iter(outputs.read(Path(request["path"]), expected))
            of_wholes = [(call, [*islice(tensors, len(like))]) for call in wholes]
            of_parts = [(part, [*islice(tensors, len(of_part))]) for part in parts]
            with _all_cores(work.point):
                return correctness.compare_timed(work, check, request["numbers"], of_wholes, of_parts)

        return _reply(TIMED, compared)

    def rates(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Reply with the highest rates of the device in some turns and seconds, 0 if there is no memory for them.

        They are measured on a core if one is given, that of the implementations.
        """
        best = Roof(0.0, 0.0)
        with _measuring(request["core"]):
            self._rates = self._rates or DeviceRates(self._made.point)
            best = self._rates.best(request["turns"], request["least_s"])
        return {**dataclasses.asdict(best), "cpu_s": process_time()}

    def probe(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Reply with the seconds of the speed probe's product and copy, 0 if there is no memory for them.

        They run on a core if one is given.
        """
        product_s = copy_s = 0.0
        with _measuring(request["core"]):
            self._probe = self._probe or SpeedProbe(self._made.point)
            product_s, copy_s = self._probe.times_s()
        return {"product_s": product_s, "copy_s": copy_s, "cpu_s": process_time()}

    @property
    def _made(self) -> workload.Workload:
        assert self._work is not None, "nothing was expected"
        return self._work

    def _workload(self, point: Point, seed: int) -> workload.Workload:
        if self._work is None or self._work.seed != seed:
            workload.set_up(point)
            self._state = process_state.ProcessState()
            work = workload.make(point, seed)
            with _all_cores(point):
                if self._work is None:
                    function.check(work)
                self._work, self._checks, self._peak = work, {}, reference.peak(work)
        return self._work


def _like(work: workload.Workload) -> list[Tensor]:
    """Return tensors of the shapes of an output, and of its gradients if the mode has any."""
    of = [*work.inputs()[: len(work.shapes)], *work.layer.parameters()] if work.with_gradients else []
    return [work.direction, *of]


def _reply(check: str, compared: Callable[[], CheckResult]) -> dict[str, Any]:
    """Return the result of a comparison as JSON; an output that can't be read has a reason alone."""
    try:
        result = compared()
    except outputs.Incorrect as incorrect:
        return {"error": None, "tolerance": None, "reason": f"{incorrect} ({check})"}
    error = result.error if math.isfinite(result.error) else None
    return {"error": error, "tolerance": result.tolerance, "reason": result.reason}


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


@contextmanager
def _all_cores(point: Point) -> Iterator[None]:
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
    judge = Judge()
    serve({name: getattr(judge, name) for name in vars(Judge) if not name.startswith("_")}, channel)
