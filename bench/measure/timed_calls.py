"""The timed calls of a case: their inputs alternate, and of each timing one result is held, drawn at its end."""

import math
import os
import random
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import torch
from torch import Tensor

from bench.measure import clock
from bench.measure.outputs import BY_ITEM, Incorrect, Output, check_output, gradients, share_memory
from bench.measure.workload import Inputs, Subject, Workload
from bench.sampling.inputs import KEY_BITS, TIMED, TURNS
from bench.sampling.rounds import Sample

REPETITIONS, REPEATED, FIXED_S = 10, 2.0, 5e-6
"""Calls on new values and on repeated values are timed in turns, REPETITIONS times each. A call on new values may take
REPEATED times as long as one on repeated values, and FIXED_S more, because a short timing has a fixed cost."""


class TimedCalls:
    """Timings of one call; `reuses` says whether all calls return the same memory.

    `cpu_s` are the processor's seconds in the calls of all timings.
    """

    def __init__(
        self, call: clock.Call, inputs: Inputs, timer: clock.HoldingTimer, rng: random.Random, *, reuses: bool
    ) -> None:
        self._call = call
        self._inputs = inputs
        self._timer = timer
        self._rng = rng
        self.reuses = reuses
        self.cpu_s = 0.0

    def timing(
        self, call: clock.Call, calls: int, key: int | None = None, hold: Callable[[int, object], None] | None = None
    ) -> float:
        """Return the seconds per call of a timing on the inputs of a key, or of a random one.

        `hold` gets the number of one call and its result. Which one is drawn when all have ended: nothing in the
        process says it before. If all calls return the same memory, the timing has two parts, and it is the last call
        of the first.
        """
        self._inputs.renew(calls, self._rng.getrandbits(KEY_BITS) if key is None else key)
        first = 1 + _below(calls) if self.reuses else calls
        sizes = [first, calls - first] if first < calls else [calls]
        total_s = 0.0
        for part, size in enumerate(sizes):
            results: list[object] = []
            start_s = process_time()
            total_s += size * self._timer(call, size, results)
            self.cpu_s += process_time() - start_s
            is_lost = not self.reuses and share_memory(results)
            if hold is not None and part == 0:
                chosen = size - 1 if self.reuses or is_lost else _below(size)
                hold(chosen, results[chosen])
            self.reuses |= is_lost
        return total_s / calls

    def sample(self, keys: Sequence[int], calls: int, outputs: "TimedOutputs") -> tuple[Sample, list[int]]:
        """Return a sample with a timing of so many calls for each key, and the numbers of the inputs of held calls."""
        timings, numbers = iter(enumerate(keys)), list[int]()

        def timer(call: clock.Call, calls: int) -> float:
            timing, key = next(timings)

            def hold(number: int, result: object) -> None:
                number, x = self._inputs.of_call(number)
                numbers.append(number)
                outputs.hold(timing, x, result)

            return self.timing(call, calls, key, hold)

        return clock.sample(self._call, timer, calls, len(keys)), numbers

    def check_repetition(self, calls: int) -> None:
        """Raise Incorrect if calls on values that were seen before are much faster than calls on new ones.

        The inputs of a timing alternate, so an implementation that keeps its results works in the first calls only.
        """
        if calls <= TURNS:
            return
        repeated_s = new_s = math.inf
        for _ in range(REPETITIONS):
            repeated_s = min(repeated_s, self.timing(self._call, calls))
            new_s = min(new_s, self.timing(self._call, TURNS))
        if new_s > REPEATED * repeated_s + FIXED_S:
            raise Incorrect(f"keeps its results: a call takes {new_s:.2g} s, and {repeated_s:.2g} s on the same values")


class TimedOutputs:
    """Memory for outputs of timed calls, allocated before the rounds so that keeping them changes no memory layout.

    `hold` copies the output of one call of a timing, `keep` those parts of what is held that are judged. In mode
    forward the gradients are computed when the whole output is kept, because they are no part of a call.
    """

    def __init__(self, subject: Subject, workload: Workload, like: Output, timings: int, parts: int) -> None:
        self._subject = subject
        self._workload = workload
        in_call = like.tensors if workload.point.mode != "forward" else like.tensors[:1]
        self._held = [[torch.zeros_like(tensor) for tensor in in_call] for _ in range(timings)]
        self._parts = [[torch.zeros_like(tensor[0]) for tensor in in_call[:BY_ITEM]] for _ in range(parts)]
        self._whole = [torch.zeros_like(tensor) for tensor in like.tensors]
        self._filled = 0
        self._last: tuple[Tensor, Tensor] | None = None

    @property
    def kept(self) -> list[Tensor]:
        """The whole output, then each part."""
        return [*self._whole, *(tensor for part in self._parts[: self._filled] for tensor in part)]

    def hold(self, timing: int, x: Tensor, result: Any) -> None:
        """Copy the result of a call on x; raises Incorrect if it has a wrong form."""
        y, of_inputs = result if self._workload.point.mode == "train" else (result, ())
        try:
            check_output(self._subject, x, y, self._workload.direction)
        except Incorrect as error:
            raise Incorrect(f"{error} ({TIMED})") from None
        inputs = [x, *self._subject.layer.parameters()]
        whole = (
            torch.zeros_like(like) if each is None else each for each, like in zip(of_inputs, inputs, strict=False)
        )
        _copy(self._held[timing], (y.detach(), *whole))
        self._last = (x, y) if self._workload.point.mode == "forward" else None

    def keep(self, parts: Sequence[tuple[int, int, int]], whole: int | None) -> None:
        """Keep items of what is held, each at a place, and the whole output of a timing; in mode forward the last."""
        for place, timing, item in parts:
            self._filled = max(self._filled, place + 1)
            _copy(self._parts[place], [tensor[item] for tensor in self._held[timing][:BY_ITEM]])
        if whole is not None:
            tensors = self._held[whole]
            if self._last is not None:
                x, y = self._last
                tensors = [*tensors, *gradients(y, x, self._subject.layer, self._workload.direction)]
            _copy(self._whole, tensors)
        self._last = None


def _copy(copies: Sequence[Tensor], tensors: Sequence[Tensor]) -> None:
    for copy, tensor in zip(copies, tensors, strict=True):
        copy.copy_(tensor)


def _below(number: int) -> int:
    """Return a random whole number below this one, from the system, which no code in this process can know before."""
    return int.from_bytes(os.urandom(8), "little") % number
