"""The rounds of a visit: turns of the implementations that are ready, and what is checked of them.

What is timed is judged too: the answer to one call of a turn that is drawn at random, and to one on values that the
implementation has not seen, after the last round. Neither is part of a time.
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
    energy,
    failure,
    gate,
    gpu_state,
    process_state,
    sampler,
    workload,
)
from bench.measure.neighbours import Neighbours
from bench.measure.outcome import Announce, Request, Visit
from bench.sampling.rounds import Reading
from bench.store import roofline

AUDITED_BEFORE = 100
"""The turn with a call that is judged is drawn from so many, early ones more often; if it never comes, it is added."""

WARM_UP_SHARE = 1 / 3
"""Warm-up may take this part of the time of the rounds: each implementation has passed the gate before it."""

LATER_ITEMS = 1
"""So many items of a large batch are compared with float64 in the trials of the rounds."""


@dataclass(frozen=True)
class Setting:
    """What all implementations of a visit share."""

    request: Request
    visit: Visit
    work: workload.Workload
    trials: tuple[gate.Trial, ...]
    timer: clock.Timer
    announce: Announce

    @property
    def warm_up_s(self) -> float:
        """The longest that one implementation may warm up: a part of its share of the visit's budget."""
        return WARM_UP_SHARE * self.request.limits.budget_s / len(self.request.implementations)


class Kept:
    """Room for one answer, taken before the rounds so that keeping it moves nothing in memory."""

    def __init__(self, like: gate.Answer) -> None:
        self._room = [torch.empty_like(tensor) for tensor in (like.output, *like.gradients)]
        self.is_taken = False

    def take(self, answer: gate.Answer) -> None:
        """Copy an answer's output and gradients."""
        for room, tensor in zip(self._room, (answer.output, *answer.gradients), strict=True):
            room.copy_(tensor)
        self.is_taken = True

    def answer(self, x: Tensor) -> gate.Answer:
        """Return what was taken as the answer to x."""
        return gate.Answer(x, self._room[0], tuple(self._room[1:]))


@dataclass(frozen=True)
class Ready:
    """An implementation that passed the gate and is warm."""

    subject: workload.Subject
    inputs: workload.Inputs
    call: clock.Call
    timer: clock.Timer
    pace: sampler.Pace
    audited: Kept


def renewing(timer: clock.Timer, inputs: workload.Inputs) -> clock.Timer:
    """Return the timer that gives the inputs other values before each timing."""

    def renewed(call: clock.Call, calls: int) -> float:
        inputs.renew(calls)
        return timer(call, calls)

    return renewed


@dataclass
class Standing:
    """The implementations of a visit that passed the gate and are warm, with all that their turns need."""

    setting: Setting
    ready: dict[str, Ready]
    rng: random.Random
    neighbours: Neighbours
    layout: torch.Tensor

    def __post_init__(self) -> None:
        shifts = self.rng.sample(range(1, workload.SHIFTS), 2)
        self._shifts = dict(zip((gate.TIMED, gate.AFTERWARDS), shifts, strict=True))
        self._due = {name: int(AUDITED_BEFORE ** self.rng.random()) - 1 for name in self.ready}
        self._state = process_state.State()

    def turn(self, name: str) -> Reading:
        """Return one slot of one implementation, to be taken while it is quiet.

        Raises Incorrect if a call that was looked at has no answer, LeftChanged if the state of the process changed.
        """
        self.setting.announce(name, "rounds")
        ready = self.ready[name]
        with process_state.kept(self._state), self.setting.visit.busy():
            if self._due[name] == 0:
                self._audit(ready)
            self._due[name] -= 1
            return sampler.slot(ready.call, ready.timer, ready.pace, self.neighbours)

    def fail(self, name: str, error: Exception) -> None:
        """End the case whose turn raised."""
        failure.end(self.setting.visit.outcomes[name], self.setting.request.point.device, error)

    def conclude(self, fastest_s: Mapping[str, float]) -> None:
        """End the rounds of those that took their turns.

        A GPU's state is kept, what was timed is judged, and the energy is taken of what is good.
        """
        point = self.setting.request.point
        energy_counter = energy.counter(point.device)
        state = dataclasses.asdict(gpu_state.read(point.device)) if point.device != "cpu" else {}
        with self.quiet():
            for name, call_s in fastest_s.items():
                outcome = self.setting.visit.outcomes[name]
                outcome.found |= state
                with failure.caught(outcome, point.device):
                    self._judge(name)
                    self.bound(name, call_s)
                    if outcome.status == "ok" and energy_counter is not None:
                        outcome.found["energy_j"] = self._energy_j(name, call_s, energy_counter)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hold what slots are taken in: the point's gradient mode, and neither garbage collection nor compilation."""
        gc.collect()
        gc.disable()
        try:
            with self.setting.work.context(), compilation.frozen():
                self._state = process_state.State()
                yield
        finally:
            gc.enable()

    def _audit(self, ready: Ready) -> None:
        """Make the calls of one timing without the clock, and keep the answer to one of them."""
        calls = ready.pace.calls
        place = self.rng.randrange(calls)
        ready.inputs.renew(calls)
        for _ in range(place):
            ready.call()
        answer = self._asked(ready, gate.TIMED)
        try:
            gate.check(ready.subject, self.setting.work, self._input(gate.TIMED), answer)
        except gate.Incorrect as wrong:
            raise gate.Incorrect(f"{wrong} ({gate.TIMED})") from None
        ready.audited.take(answer)
        for _ in range(calls - place - 1):
            ready.call()

    def _judge(self, name: str) -> None:
        """Judge a call that was timed, and one on fresh values; raises Incorrect, or LeftChanged."""
        ready, work = self.ready[name], self.setting.work
        self.setting.announce(name, "last calls")
        with process_state.kept(self._state):
            if not ready.audited.is_taken:
                self._audit(ready)
            if ready.inputs.are_edited():
                raise gate.Incorrect(f"edited its input in place ({gate.TIMED})")
            if not gate.has_weights_of(ready.subject, work):
                raise gate.Incorrect(f"edited the layer's weights ({gate.TIMED})")
            fresh = self._asked(ready, gate.AFTERWARDS)
        self._compare(name, gate.TIMED, ready.audited.answer(self._input(gate.TIMED)))
        self._compare(name, gate.AFTERWARDS, fresh)

    def _compare(self, name: str, trial: str, answer: gate.Answer) -> None:
        verdict = gate.compare(self.ready[name].subject, self.setting.work, self._trials[trial], answer)
        if verdict.objection:
            found = {"error": gate.finite(verdict.error), "tolerance": verdict.tolerance}
            self.setting.visit.outcomes[name].found |= found
            raise gate.Incorrect(verdict.objection)

    @cached_property
    def _trials(self) -> dict[str, gate.Trial]:
        """What is expected of the calls that are judged; the same input for every implementation."""
        self.setting.announce("", "reference")
        return {
            name: gate.trial(self.setting.work, name, self._input(name), LATER_ITEMS)
            for name in (gate.TIMED, gate.AFTERWARDS)
        }

    def _input(self, trial: str) -> Tensor:
        return self.setting.work.input(self._shifts[trial])

    def _asked(self, ready: Ready, trial: str) -> gate.Answer:
        """Ask for the answer to a trial, on one of the inputs that take turns."""
        direction = self.setting.work.direction if self.setting.work.with_gradients else None
        return gate.ask(ready.subject, ready.inputs.holding(self._shifts[trial]), direction)

    def _energy_j(self, name: str, call_s: float, counter: energy.Counter) -> float | None:
        """Return the joules of a call; raises LeftChanged, or what the call raises."""
        self.setting.announce(name, "energy")
        ready, device = self.ready[name], self.setting.request.point.device
        with process_state.kept(), self.setting.visit.busy():
            return energy.per_call_j(counter, ready.call, call_s, device)

    def bound(self, name: str, call_s: float) -> None:
        """End the case if its time is impossible for the work; what is seen of the device is told to the visit."""
        ready, visit, work = self.ready[name], self.setting.visit, self.setting.work

        def again() -> float:
            with work.context(), compilation.frozen():
                return ready.timer(ready.call, ready.pace.calls)

        try:
            judged = ceiling.judge(
                work.point, work.least_work, call_s, visit.ceiling, again, self.setting.request.beside
            )
        except Exception as error:
            if failure.is_out_of_memory(error):  # then nothing is called impossible
                return
            raise
        visit.ceiling = judged.best
        visit.outcomes[name].found |= {
            "flops": work.least_work.flops,
            "least_bytes": work.least_work.least_bytes,
            roofline.CEILING_FLOPS: judged.best.flops_per_s,
            roofline.CEILING_BYTES: judged.best.bytes_per_s,
        }
        visit.outcomes[name].detail = judged.doubt
        if judged.objection:
            visit.outcomes[name].end("error", judged.objection)
