"""The judge: a process that compares the outputs of implementations with what is expected at a point.

It imports no code of an implementation or of a layer, its own or a package's: what is expected comes from another
process, as bytes and numbers. It also measures which rates the device reaches, and how fast it is now.
"""

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from time import process_time
from typing import Any

import torch
from torch import Tensor

from bench.machine import facts
from bench.measure import correctness, elements, failure, outputs, workload
from bench.measure.correctness import CheckResult, Form
from bench.measure.elements import Elements
from bench.measure.failure import Outcome
from bench.measure.forking import Channel, methods, serve
from bench.measure.reference import Check, Computed, Expected, Target, largest_of
from bench.measure.rounding import MOST_TOLERANCE
from bench.measure.speed import DeviceRates, SpeedProbe
from bench.plan.case import Point
from bench.plan.work import Roof
from bench.sampling.inputs import AFTERWARDS, PEAKED, TIMED, Part

MOST_THREADS = 8
"""The most threads of a reference, which is a few small products, and of a comparison."""

MOST_PEAKED = 1.0
"""The largest tolerance on a peaked input in a half type."""


class Judge:
    """Serves the requests of a judge for one point."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._rates: DeviceRates | None = None
        self._probe: SpeedProbe | None = None

    def hold(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Hold what is expected for some inputs, in place of what was expected for inputs of the same names."""
        outcome = Outcome()
        self._point = point = Point(**request["point"])
        with failure.caught(outcome, point.device, "the reference failed: "):
            outputs.check_files(request)
            workload.set_up(point)
            self._form = Form(**request["form"])
            held = _checks(request["checks"], *request["descriptors"])
            for check in held:
                _check_believable(check, getattr(torch, point.dtype))
            self._checks |= {check.name: check for check in held}
        return dataclasses.asdict(outcome)

    def compare(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Compare the output in a file with what is expected; reply with error, tolerance, and why it is incorrect.

        Errors up to the share `allowed` are accepted.
        """
        form, check, allowed = self._form, self._checks[request["check"]], request["allowed"]
        (file,) = request["descriptors"]
        return self._reply(check.name, lambda: correctness.compare(form, check, outputs.read(file, form.like), allowed))

    def compare_timed(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Compare the outputs of timed calls in a file, whole ones and then items; reply as to `compare`.

        `parts` says which items; what is `computed` for all lies in the second file, and the places of the `elements`
        that are compared in the third.
        """
        form, parts = self._form, [Part(*part) for part in request["parts"]]
        file, of_reference, of_places = request["descriptors"]
        *of_wholes, of_parts = _computed(request["computed"], of_reference)
        places = Elements.read(request["elements"], of_places)

        def compared() -> CheckResult:
            whole = [*map(elements.like, places.of_whole, form.like)]
            part = [*map(elements.like, places.of_part, form.like_part)]
            tensors = iter(outputs.read(file, [*whole * len(of_wholes), *part * len(parts)]))
            wholes = [(computed, [*islice(tensors, len(whole))]) for computed in of_wholes]
            items = [(part, [*islice(tensors, len(form.like_part))]) for part in parts]
            check, allowed = self._checks[AFTERWARDS], request["allowed"]
            return correctness.compare_timed(form, check, wholes, items, of_parts, places, allowed)

        return self._reply(TIMED, compared)

    def rates(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Reply with the highest rates of the device in some turns and seconds, 0 if there is no memory for them.

        They are measured on a core if one is given, that of the implementations.
        """
        best = Roof(0.0, 0.0)
        with _measuring(request["core"]):
            self._rates = self._rates or DeviceRates(self._point)
            best = self._rates.best(request["turns"], request["least_s"])
        return {**dataclasses.asdict(best), "cpu_s": process_time()}

    def probe(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Reply with the seconds of the speed probe's product and copy, 0 if there is no memory for them.

        They run on a core if one is given.
        """
        product_s = copy_s = 0.0
        with _measuring(request["core"]):
            self._probe = self._probe or SpeedProbe(self._point)
            product_s, copy_s = self._probe.times_s()
        return {"product_s": product_s, "copy_s": copy_s, "cpu_s": process_time()}

    def _reply(self, check: str, compared: Callable[[], CheckResult]) -> dict[str, Any]:
        """Return the result of a comparison as JSON; an output that can't be read has a reason alone."""
        try:
            with all_cores(self._point):
                result = compared()
        except outputs.Incorrect as incorrect:
            return {"error": None, "tolerance": None, "reason": f"{incorrect} ({check})"}
        error = result.error if math.isfinite(result.error) else None
        return {"error": error, "tolerance": result.tolerance, "reason": result.reason}


def _checks(described: list[dict[str, Any]], descriptor: int) -> list[Check]:
    """Return the checks of these descriptions, whose numbers lie in a file."""
    parts = [part for check in described for part in check["expected"]]
    like = [
        each for part in parts for each in (_like(["float64", [len(part["targets"]), 2]]), *_likes(part["targets"]))
    ]
    tensors = iter(outputs.read(descriptor, like))

    def expected(part: dict[str, Any]) -> Expected:
        numbers = next(tensors).tolist()
        pairs = [_taken(pair, tensors) for pair in part["targets"]]
        targets = (
            Target(tensor, scale, tolerance, equal)
            for (tensor, equal), (scale, tolerance) in zip(pairs, numbers, strict=True)
        )
        return Expected(part["items"], tuple(targets))

    return [Check(check["name"], tuple(map(expected, check["expected"]))) for check in described]


def _computed(described: list[list[Any]], descriptor: int) -> list[list[Computed]]:
    """Return what was computed by these descriptions, whose numbers lie in a file."""
    tensors = iter(outputs.read(descriptor, _likes(pair for pairs in described for pair in pairs)))
    return [[_taken(pair, tensors) for pair in pairs] for pairs in described]


def _likes(pairs: Iterable[list[Any]]) -> list[Tensor]:
    return [_like(each) for pair in pairs for each in pair if each is not None]


def _like(described: list[Any]) -> Tensor:
    dtype, shape = described
    return torch.empty(shape, dtype=getattr(torch, dtype), device="meta")


def _taken(pair: list[Any], tensors: Iterator[Tensor]) -> Computed:
    return Computed(*(None if each is None else next(tensors) for each in pair))  # type: ignore[arg-type]


def _check_believable(check: Check, dtype: torch.dtype) -> None:
    """Raise ValueError if a check is wider than a reference makes it: then the layer's code has changed it."""
    most = max(MOST_TOLERANCE[dtype], MOST_PEAKED if check.name == PEAKED and dtype.itemsize == 2 else 0.0)
    for expected in check.expected:
        largest = largest_of([target.tensor for target in expected.targets])
        of_all = max(largest)
        if any(
            target.tolerance > most or target.scale > (of_all if own else max(of_all, 1.0))
            for target, own in zip(expected.targets, largest, strict=True)
        ):
            raise ValueError(f"what is expected ({check.name}) came with a tolerance that is none")


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
