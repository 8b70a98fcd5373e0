"""The rounds of a visit: samples of the prepared implementations, and the checks of timed calls.

Two more outputs are checked: that of one call in a randomly chosen sample, and that of a call after the last round, on
values that the implementation has not seen. Neither call is part of a time.
"""

import dataclasses
import gc
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bench.measure import (
    ceiling,
    clock,
    compilation,
    correctness,
    energy,
    failure,
    gpu_state,
    process_state,
    sampler,
    workload,
)
from bench.measure.interference import Interference
from bench.measure.outcome import Announce, Request, Visit
from bench.sampling.rounds import Sample
from bench.store import roofline

AUDITED_BEFORE = 100
"""The sample with a checked call is drawn from the first 100, early ones more often; if the rounds end before it, the
call is made after them."""

WARM_UP_SHARE = 1 / 3
"""The largest part of the rounds' time for the warm-up: each implementation was called before, for its check."""

LATER_ITEMS = 1
"""The number of items of a large batch that are compared with float64 in the checks during and after the rounds."""


@dataclass(frozen=True)
class VisitContext:
    """The objects that all implementations of a visit share."""

    request: Request
    visit: Visit
    work: workload.Workload
    check_inputs: tuple[correctness.CheckInput, ...]
    timer: clock.Timer
    announce: Announce

    @property
    def warm_up_s(self) -> float:
        """The most seconds for the warm-up of one implementation: a part of its share of the visit's budget."""
        return WARM_UP_SHARE * self.request.limits.budget_s / len(self.request.implementations)


class OutputBuffer:
    """Memory for one output, allocated before the rounds so that keeping the output changes no memory layout."""

    def __init__(self, like: correctness.Output) -> None:
        self._tensors = [torch.empty_like(tensor) for tensor in (like.y, *like.gradients)]
        self.is_filled = False

    def fill(self, output: correctness.Output) -> None:
        """Copy an output and its gradients."""
        for copy, tensor in zip(self._tensors, (output.y, *output.gradients), strict=True):
            copy.copy_(tensor)
        self.is_filled = True

    def output(self, x: Tensor) -> correctness.Output:
        """Return the copies as the output for x."""
        return correctness.Output(x, self._tensors[0], tuple(self._tensors[1:]))


@dataclass(frozen=True)
class Prepared:
    """An implementation that passed its check and is warm."""

    subject: workload.Subject
    inputs: workload.Inputs
    call: clock.Call
    timer: clock.Timer
    pace: sampler.Pace
    audited: OutputBuffer


def renewing(timer: clock.Timer, inputs: workload.Inputs) -> clock.Timer:
    """Return a timer that writes other values into the inputs before each timing."""

    def renewed(call: clock.Call, calls: int) -> float:
        inputs.renew(calls)
        return timer(call, calls)

    return renewed


@dataclass
class PreparedPoint:
    """The implementations of a visit that passed their check and are warm, with all that their samples need."""

    context: VisitContext
    implementations: dict[str, Prepared]
    rng: random.Random
    interference: Interference
    layout: torch.Tensor

    def __post_init__(self) -> None:
        shifts = self.rng.sample(range(1, workload.SHIFTS), 2)
        self._shifts = dict(zip((correctness.TIMED, correctness.AFTERWARDS), shifts, strict=True))
        self._due = {name: int(AUDITED_BEFORE ** self.rng.random()) - 1 for name in self.implementations}
        self._state = process_state.State()

    def take_sample(self, name: str) -> Sample:
        """Return one sample of one implementation; it must be taken inside `quiet`.

        Raises Incorrect if a checked call has a wrong form, LeftChanged if the state of the process changed.
        """
        self.context.announce(name, "rounds")
        prepared = self.implementations[name]
        with process_state.kept(self._state), self.context.visit.busy():
            if self._due[name] == 0:
                self._audit(prepared)
            self._due[name] -= 1
            return sampler.sample(prepared.call, prepared.timer, prepared.pace, self.interference)

    def fail(self, name: str, error: Exception) -> None:
        """End a case with the error that its sample raised."""
        failure.end(self.context.visit.outcomes[name], self.context.request.point.device, error)

    def conclude(self, fastest_s: Mapping[str, float]) -> None:
        """End the rounds: record a GPU's state, check outputs and rates, and measure the energy of each good case.

        `fastest_s` has the fewest seconds per call of each implementation that came through the rounds.
        """
        point = self.context.request.point
        energy_counter = energy.counter(point.device)
        state = dataclasses.asdict(gpu_state.read(point.device)) if point.device != "cpu" else {}
        with self.quiet():
            for name, call_s in fastest_s.items():
                outcome = self.context.visit.outcomes[name]
                outcome.metrics |= state
                with failure.caught(outcome, point.device):
                    self._check(name)
                    self.check_rate(name, call_s)
                    if outcome.status == "ok" and energy_counter is not None:
                        outcome.metrics["energy_j"] = self._energy_j(name, call_s, energy_counter)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Set the conditions for samples: the point's gradient mode, no garbage collection and no compilation."""
        gc.collect()
        gc.disable()
        try:
            with self.context.work.gradient_mode(), compilation.frozen():
                self._state = process_state.State()
                yield
        finally:
            gc.enable()

    def _audit(self, prepared: Prepared) -> None:
        """Make the calls of one timing without the clock, and keep the output of one of them."""
        calls = prepared.pace.calls
        earlier = self.rng.randrange(calls)
        prepared.inputs.renew(calls)
        for _ in range(earlier):
            prepared.call()
        output = self._output(prepared, correctness.TIMED)
        try:
            correctness.check_form(prepared.subject, self.context.work, self._input(correctness.TIMED), output)
        except correctness.Incorrect as error:
            raise correctness.Incorrect(f"{error} ({correctness.TIMED})") from None
        prepared.audited.fill(output)
        for _ in range(calls - earlier - 1):
            prepared.call()

    def _check(self, name: str) -> None:
        """Check a call of the rounds and one on fresh values; raises Incorrect or LeftChanged."""
        prepared, work = self.implementations[name], self.context.work
        self.context.announce(name, "last calls")
        with process_state.kept(self._state):
            if not prepared.audited.is_filled:
                self._audit(prepared)
            if prepared.inputs.are_edited():
                raise correctness.Incorrect(f"edited its input in place ({correctness.TIMED})")
            if not correctness.has_weights_of(prepared.subject, work):
                raise correctness.Incorrect(f"edited the layer's weights ({correctness.TIMED})")
            fresh = self._output(prepared, correctness.AFTERWARDS)
        self._compare(name, correctness.TIMED, prepared.audited.output(self._input(correctness.TIMED)))
        self._compare(name, correctness.AFTERWARDS, fresh)

    def _compare(self, name: str, check: str, output: correctness.Output) -> None:
        subject, expected = self.implementations[name].subject, self._check_inputs[check]
        result = correctness.compare(subject, self.context.work, expected, output)
        if result.reason:
            metrics = {"error": correctness.finite(result.error), "tolerance": result.tolerance}
            self.context.visit.outcomes[name].metrics |= metrics
            raise correctness.Incorrect(result.reason)

    @cached_property
    def _check_inputs(self) -> dict[str, correctness.CheckInput]:
        """The inputs of the checked calls with their expected results; the same for all implementations."""
        self.context.announce("", "reference")
        return {
            name: correctness.check_input(self.context.work, name, self._input(name), LATER_ITEMS)
            for name in (correctness.TIMED, correctness.AFTERWARDS)
        }

    def _input(self, check: str) -> Tensor:
        return self.context.work.input(self._shifts[check])

    def _output(self, prepared: Prepared, check: str) -> correctness.Output:
        """Return the output for a check's values, in one of the tensors that timed calls use."""
        direction = self.context.work.direction if self.context.work.with_gradients else None
        return correctness.compute(prepared.subject, prepared.inputs.holding(self._shifts[check]), direction)

    def _energy_j(self, name: str, call_s: float, counter: energy.Counter) -> float | None:
        """Return the joules of a call; raises LeftChanged, or the call's own error."""
        self.context.announce(name, "energy")
        prepared, device = self.implementations[name], self.context.request.point.device
        with process_state.kept(), self.context.visit.busy():
            return energy.per_call_j(counter, prepared.call, call_s, device)

    def check_rate(self, name: str, call_s: float) -> None:
        """End the case if its time is impossible for the work; record the device's highest rates in the visit."""
        prepared, visit, work = self.implementations[name], self.context.visit, self.context.work

        def again() -> float:
            with work.gradient_mode(), compilation.frozen():
                return prepared.timer(prepared.call, prepared.pace.calls)

        try:
            judgement = ceiling.judge(
                work.point, work.least_work, call_s, visit.ceiling, again, self.context.request.beside
            )
        except Exception as error:
            if failure.is_out_of_memory(error):  # then the rate can't be checked
                return
            raise
        visit.ceiling = judgement.best
        visit.outcomes[name].metrics |= {
            "flops": work.least_work.flops,
            "least_bytes": work.least_work.least_bytes,
            roofline.CEILING_FLOPS: judgement.best.flops_per_s,
            roofline.CEILING_BYTES: judgement.best.bytes_per_s,
        }
        visit.outcomes[name].detail = judgement.doubt
        if judgement.objection:
            visit.outcomes[name].end("error", judgement.objection)
