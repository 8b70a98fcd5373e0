"""The process that computes what is expected at a point. It imports the layer, which may be a user's own code.

So it compares nothing: what it computes goes to the judge as bytes and numbers.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

import impls
from bench.measure import elements, failure, function, memory, outputs, process_state, reference, workload
from bench.measure.correctness import Form
from bench.measure.devices import device
from bench.measure.elements import Elements
from bench.measure.failure import Outcome
from bench.measure.forking import Channel, methods, serve
from bench.measure.judge import all_cores
from bench.measure.reference import Check, Computed, Target
from bench.plan.case import Point
from bench.plan.errors import NOT_FINITE
from bench.plan.layers import is_own
from bench.sampling.inputs import PEAKED, InputValues, Part, TimedCall

UNPEAKED = f"the layer's own output of larger inputs {NOT_FINITE}, so the peaked input is no larger than a normal one"


class References:
    """Serves the requests for what is expected at one point; with another seed it makes all anew."""

    def __init__(self) -> None:
        self._work: workload.Workload | None = None
        self._peak = 1.0
        self._sent: dict[str, InputValues] = {}
        self._remark = ""

    def expect(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Compute what is expected for the inputs in `shifts`; reply with the least work of a call, or why it can't.

        The reply also has the factor of the peaked input, the form of an output, a remark on what is odd about what is
        expected, and a description of `checks`, whose numbers lie in the first file. What was sent before is left out.
        A second file gets weights and values, for another side of a duel.
        """
        point, outcome = Point(**request["point"]), Outcome()
        with failure.caught(outcome, point.device, "the reference failed: "):
            if reason := obstacle(point):
                raise impls.Unsupported(reason)
            outputs.check_files(request)
            channel.announce("reference")
            work = self._workload(point, request["seed"])
            file, *saved = request["descriptors"]
            for descriptor in saved:
                workload.save(work, descriptor)
            with all_cores(point):
                checks = [*self._expected(work, request["shifts"])]
            outputs.write([*tensors_of(checks)], file)
            memory.give_back()  # the reference's memory is needed by the implementations
            if changes := self._state.changes(free=process_state.ANY):
                raise process_state.LeftChanged(f"{changes} (when the layer was made or called)")
            return {
                **dataclasses.asdict(outcome),
                "work": dataclasses.asdict(work.least_work),
                "peak": self._peak,
                "remark": "; ".join(filter(None, [UNPEAKED if self._peak == 1 else "", self._remark])),
                "form": dataclasses.asdict(Form.of(work)),
                "checks": [described(check) for check in checks],
            }
        return dataclasses.asdict(outcome)

    def expect_timed(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Compute what is expected of timed calls, whole ones and then items; reply with its description.

        `wholes` and `parts` say which calls and items, and `numbers` is the key of the numbers of their inputs. Of all
        that is computed only the `elements` that are compared go into the first file, their places into the second.
        """
        outcome, work = Outcome(), self._work
        assert work is not None, "nothing was expected"
        with failure.caught(outcome, work.point.device, "the reference failed: "):
            outputs.check_files(request)
            numbers, parts = request["numbers"], [Part(*part) for part in request["parts"]]
            with all_cores(work.point):
                wholes = [_of_whole(work, numbers, TimedCall(*call)) for call in request["wholes"]]
                computed = [*wholes, _of_parts(work, numbers, parts)]
            compared = Elements(
                [elements.drawn([each.tensor for each in of]) for of in zip(*wholes, strict=True)],
                [elements.drawn(each.tensor.unbind()) for each in computed[-1]],
            )
            computed = [
                *([*map(_at, compared.of_whole, each)] for each in wholes),
                [_at(places, each, batch=True) for places, each in zip(compared.of_part, computed[-1], strict=True)],
            ]
            file, of_places = request["descriptors"]
            outputs.write([tensor for each in computed for pair in each for tensor in pair if tensor is not None], file)
            compared.write(of_places)
            described = [[*map(_of_pair, each)] for each in computed]
            return {**dataclasses.asdict(outcome), "computed": described, "elements": compared.described}
        return dataclasses.asdict(outcome)

    def _expected(self, work: workload.Workload, shifts: dict[str, int]) -> Iterator[Check]:
        for name, shift in shifts.items():
            values = InputValues(shift, self._peak if name == PEAKED else 1.0)
            if self._sent.get(name) != values:
                check = reference.expect(work, name, values)
                self._remark = self._remark or check.remark  # the next one's numbers differ a little
                self._sent[name] = values
                yield check

    def _workload(self, point: Point, seed: int) -> workload.Workload:
        if self._work is None or self._work.seed != seed:
            workload.set_up(point)
            self._state = process_state.ProcessState()
            work = workload.make(point, seed)
            with all_cores(point):
                if self._work is None and is_own(point.layer):  # the suite's own are known to be functions
                    function.check(work)
                self._work, self._sent, self._peak = work, {}, reference.peak(work)
                self._remark = ""
        return self._work


def _of_whole(work: workload.Workload, numbers: int, call: TimedCall) -> Sequence[Computed]:
    return reference.of_calls(work, work.timed.inputs(numbers, call), work.direction_of(call.key))


def _of_parts(work: workload.Workload, numbers: int, parts: Sequence[Part]) -> Sequence[Computed]:
    items = [work.timed.inputs(numbers, TimedCall(*part[:2]), part.item) for part in parts]
    xs = tuple(map(torch.stack, zip(*items, strict=True)))
    if work.point.mode not in workload.TRAINED:
        return reference.of_calls(work, xs, None)
    direction = torch.stack([work.direction_of(part.key)[part.item] for part in parts])
    return reference.of_calls(work, xs, direction)[: work.by_item]


def _at(places: Tensor | None, computed: Computed, *, batch: bool = False) -> Computed:
    """Return what was computed at these places."""
    return Computed(*(None if each is None else elements.at(places, each, batch=batch) for each in computed))  # type: ignore[arg-type]


def tensors_of(checks: Iterable[Check]) -> Iterator[Tensor]:
    """Yield the tensors of checks in the order of their descriptions, scales and tolerances before each group."""
    for check in checks:
        for expected in check.expected:
            yield torch.tensor([target[1:3] for target in expected.targets], dtype=torch.float64)
            for target in expected.targets:
                yield from (each for each in (target.tensor, target.equal) if each is not None)


def described(check: Check) -> dict[str, Any]:
    """Return a check without its numbers, as JSON."""
    parts = [{"items": each.items, "targets": [*map(_of_target, each.targets)]} for each in check.expected]
    return {"name": check.name, "expected": parts}


def _of_target(target: Target) -> list[Any]:
    return _of_pair(Computed(target.tensor, target.equal))


def _of_pair(computed: Computed) -> list[Any]:
    return [_of(each) for each in computed]


def _of(tensor: Tensor | None) -> list[Any] | None:
    return None if tensor is None else [str(tensor.dtype).removeprefix("torch."), [*tensor.shape]]


def obstacle(point: Point) -> str:
    """Return why this machine can't run the point, empty if it can."""
    if point.timing not in point.kind.timings:
        return f"timing = {point.timing} can't be used on {point.kind.name}; expected {' or '.join(point.kind.timings)}"
    return device(point.device).obstacle


def work(channel: Channel) -> None:
    """Serve the requests for what is expected until the parent closes the pipe."""
    serve(methods(References()), channel)
