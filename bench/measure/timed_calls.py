"""The timed calls of a case: their inputs alternate, and of each timing one result is held, drawn at its end."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor

from bench.measure import clock
from bench.measure.elements import Elements, at
from bench.measure.outputs import Incorrect, Output, check_output, check_plain, gradients, share_memory
from bench.measure.process_state import ProcessState, hooks
from bench.measure.workload import TRAINED, Inputs, Subject, Tensors, Workload
from bench.plan.errors import NOT_FINITE
from bench.sampling.inputs import KEY_BITS, TIMED
from bench.sampling.rounds import Sample

Hold = Callable[[int, object], None]
"""It gets the number of a call and its result."""


class TimedCalls:
    """Timings of one call; `reuses` says whether all calls return the same memory.

    `used_s` are the processor's seconds in the calls of all timings.
    """

    def __init__(
        self, call: clock.Call, inputs: Inputs, timer: clock.Timer, rng: random.Random, *, reuses: bool
    ) -> None:
        self._call = call
        self._inputs = inputs
        self._timer = timer
        self._rng = rng
        self.reuses = reuses
        self.used_s = 0.0

    def of(self, call: clock.Call) -> "TimedCalls":
        """Return timings of another call of the same inputs, each result of which has memory of its own."""
        return TimedCalls(call, self._inputs, self._timer, self._rng, reuses=False)

    @property
    def most_calls(self) -> float:
        """The most calls of a timing."""
        return self._timer.most_calls

    @property
    def late_s(self) -> float:
        """The seconds for which the device usually goes on after the calls of a timing."""
        return self._timer.late_s

    def timing(self, call: clock.Call, calls: int, key: int | None = None, hold: Hold | None = None) -> clock.Timing:
        """Return a timing on the inputs of a key, or of a random one; one that is void is repeated.

        `hold` gets the number of one call and its result, drawn when all have ended: nothing in the process says it
        before. If all calls return the same memory, it is the last. Raises Incorrect for a result of another class.
        """
        key = self._rng.getrandbits(KEY_BITS) if key is None else key
        while True:
            with suppress(clock.Void):
                return self._timing(call, int(min(calls, self.most_calls)), key, hold)

    def _timing(self, call: clock.Call, calls: int, key: int, hold: Hold | None) -> clock.Timing:
        self._inputs.renew(calls, key, lambda: self._timer.hold(self._inputs.clear))
        results: list[object] = []
        clock.prepare(call, calls)
        state = ProcessState(hooks)
        begin_s = time.process_time()
        taken = self._timer(call, calls, results)
        self.used_s += time.process_time() - begin_s
        state.check()  # before anything touches a result: a hook may do work that was put off
        self.reuses |= share_memory(self._plain_outputs(results))
        if hold is not None:
            chosen = calls - 1 if self.reuses else self._rng.randrange(calls)
            hold(chosen, results[chosen])
        return taken

    def _plain_outputs(self, results: Sequence[Any]) -> list[Tensor]:
        """Return the outputs among results that were not touched yet; raises Incorrect."""
        ys, of_inputs = [*results], list[object]()
        if self._inputs.with_directions:
            ys, of_inputs = [y for y, _ in results], [each for _, gradients in results for each in gradients]
        with in_timed_call():
            check_plain(ys, "output")
            check_plain(of_inputs, "gradient")
        return ys

    def sample(self, keys: Sequence[int], calls: int, outputs: "TimedOutputs") -> tuple[Sample, list[int]]:
        """Return a sample with a timing of so many calls for each key, and which input of each had the call held."""
        numbers = list[int]()

        def timer(call: clock.Call, calls: int) -> clock.Timing:
            def hold(number: int, result: object) -> None:
                place, inputs = self._inputs.of_call(number)
                outputs.hold(len(numbers), inputs, result, self._inputs.direction)
                numbers.append(place)

            return self.timing(call, calls, keys[len(numbers)], hold)

        return clock.sample(self._call, timer, calls, len(keys)), numbers


@contextmanager
def in_timed_call() -> Iterator[None]:
    """Let an Incorrect that is raised inside say that it was in a timed call."""
    try:
        yield
    except Incorrect as error:
        raise Incorrect(f"{error} ({TIMED})") from None


class TimedOutputs:
    """Memory for outputs of timed calls, allocated before the rounds so that keeping them changes no memory layout.

    `hold` copies the output of one call of a timing, `keep` what is judged of what is held: whole outputs and items. In
    mode forward the gradients are computed when a whole output is kept, because they are no part of a call.
    """

    def __init__(
        self, subject: Subject, workload: Workload, like: Output, *, timings: int, wholes: int, parts: int
    ) -> None:
        self._subject = subject
        self._workload = workload
        in_call = like.tensors if workload.point.mode != "forward" else like.tensors[:1]
        self._held = [[torch.zeros_like(tensor) for tensor in in_call] for _ in range(timings)]
        self._lengths = [workload.lengths] * timings
        self._wholes = [[torch.zeros_like(tensor) for tensor in self._whole(like.tensors, 0)] for _ in range(wholes)]
        self._parts = [[torch.zeros_like(tensor) for tensor in self._part(in_call, 0, 0)] for _ in range(parts)]
        self._filled: tuple[int, ...] = (0, 0)
        self._last: tuple[Tensors, Tensor, Tensor] | None = None

    def kept(self, compared: Elements) -> list[Tensor]:
        """Return what is compared of the whole outputs, then of the items, each in the order of their places.

        Raises Incorrect if an output of these isn't finite, also where nothing is compared.
        """
        wholes, parts = self._filled
        if not all(bool(each[0].isfinite().all()) for each in (*self._wholes[:wholes], *self._parts[:parts])):
            raise Incorrect(f"output {NOT_FINITE} ({TIMED})")
        ordered = [zip(compared.of_whole, self._workload.ordered(each), strict=True) for each in self._wholes[:wholes]]
        items = [zip(compared.of_part, each, strict=True) for each in self._parts[:parts]]
        return [at(*pair) for pairs in (*ordered, *items) for pair in pairs]

    def hold(self, timing: int, xs: Tensors, result: Any, direction: Tensor) -> None:
        """Copy the result of a call on inputs with a gradient of its output; raises Incorrect for a wrong form."""
        y, of_inputs = result if self._workload.point.mode in TRAINED else (result, ())
        with in_timed_call():
            check_output(self._subject, xs, y, self._workload.direction)
        inputs, found = xs[: self._workload.by_item - 1], iter(of_inputs)
        frozen = {id(weight) for weight in self._subject.weights} - {id(weight) for weight in self._subject.trained}
        whole = [Tensor.detach(y)]
        for like in (*inputs, *self._subject.weights) if of_inputs else ():
            gradient = None if id(like) in frozen else next(found)
            whole.append(torch.zeros_like(like) if gradient is None else gradient)
        _copy(self._held[timing], whole)
        self._lengths[timing] = self._workload.layout.lengths
        self._last = (xs, y, direction) if self._workload.point.mode == "forward" else None

    def _part(self, tensors: Sequence[Tensor], timing: int, item: int) -> list[Tensor]:
        """Return an item of the tensors of a timing that have a batch."""
        layout, lengths = self._workload.layout, self._lengths[timing]
        return [layout.item(tensor, lengths, item) for tensor in tensors[: self._workload.by_item]]

    def _whole(self, tensors: Sequence[Tensor], timing: int) -> list[Tensor]:
        """Return the tensors of a timing, those that have a batch as the judge expects them."""
        layout, lengths, by_item = self._workload.layout, self._lengths[timing], self._workload.by_item
        return [*(layout.whole(tensor, lengths) for tensor in tensors[:by_item]), *tensors[by_item:]]

    def keep(self, parts: Sequence[tuple[int, int, int]], wholes: Sequence[tuple[int, int]]) -> None:
        """Keep items and whole outputs of timings, each at a place; in mode forward the whole one is the last."""
        for place, timing, item in parts:
            _copy(self._parts[place], self._part(self._held[timing], timing, item))
        for place, timing in wholes:
            tensors = self._held[timing]
            if self._last is not None:
                xs, y, direction = self._last
                tensors = [*tensors, *gradients(y, xs, self._subject.weights, direction)]
            _copy(self._wholes[place], self._whole(tensors, timing))
        filled = zip(self._filled, (wholes, parts), strict=True)
        self._filled = tuple(max([count, *(place + 1 for place, *_ in kept)]) for count, kept in filled)
        self._last = None


def _copy(copies: Sequence[Tensor], tensors: Sequence[Tensor]) -> None:
    for copy, tensor in zip(copies, tensors, strict=True):
        copy.copy_(tensor)
