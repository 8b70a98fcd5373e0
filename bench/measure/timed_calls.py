"""The timed calls of a case: their inputs alternate, and of each timing one result is held, drawn at its end."""

import os
import random
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from bench.measure import clock
from bench.measure.outputs import Incorrect, Output, check_output, gradients, share_memory
from bench.measure.threads import Threads, Used
from bench.measure.workload import TRAINED, Inputs, Subject, Tensors, Workload
from bench.sampling.inputs import KEY_BITS, TIMED
from bench.sampling.rounds import Sample


class TimedCalls:
    """Timings of one call; `reuses` says whether all calls return the same memory.

    `used` are the processor's seconds in the calls of all timings. `prepared_s` are those of other threads than the
    main one and OpenMP's in what calls need and is not timed. `apart_s` are the seconds of making that, and the inputs.
    """

    def __init__(
        self,
        call: clock.Call,
        inputs: Inputs,
        timer: clock.HoldingTimer,
        rng: random.Random,
        threads: Threads,
        *,
        reuses: bool,
    ) -> None:
        self._call = call
        self._inputs = inputs
        self._timer = timer
        self._rng = rng
        self._threads = threads
        self.reuses = reuses
        self.used = Used()
        self.prepared_s = self.apart_s = 0.0

    def timing(
        self, call: clock.Call, calls: int, key: int | None = None, hold: Callable[[int, object], None] | None = None
    ) -> float:
        """Return the seconds per call of a timing on the inputs of a key, or of a random one.

        `hold` gets the number of one call and its result. Which one is drawn when all have ended: nothing in the
        process says it before. If all calls return the same memory, the timing has two parts, and it is the last call
        of the first. Raises Incorrect if a call returned a tensor of another type, whose work may be yet to come.
        """
        begin_s = perf_counter()
        self._inputs.renew(calls, self._rng.getrandbits(KEY_BITS) if key is None else key)
        self.apart_s += perf_counter() - begin_s
        first = 1 + _below(calls) if self.reuses else calls
        sizes = [first, calls - first] if first < calls else [calls]
        total_s = 0.0
        for part, size in enumerate(sizes):
            results: list[object] = []
            before, begin_s = self._threads.read(), perf_counter()
            clock.prepare(call, size)
            self.apart_s += perf_counter() - begin_s
            start = self._threads.read()
            self.prepared_s += start.since(before).others_s
            total_s += size * self._timer(call, size, results)
            self.used = self.used.plus(self._threads.read().since(start))
            _check_types(results)
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
                number, inputs = self._inputs.of_call(number)
                numbers.append(number)
                outputs.hold(timing, inputs, result)

            return self.timing(call, calls, key, hold)

        return clock.sample(self._call, timer, calls, len(keys)), numbers


def _check_types(results: Sequence[object]) -> None:
    """Raise Incorrect for the first result that is a subclass of a tensor: any use of it may begin its work."""
    for result in results:
        y = result[0] if type(result) is tuple and result else result
        if type(y) is not Tensor and issubclass(type(y), Tensor):
            raise Incorrect(f"output is a {type(y).__name__}, expected a plain torch.Tensor ({TIMED})")


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
        self._wholes = [[torch.zeros_like(tensor) for tensor in like.tensors] for _ in range(wholes)]
        self._parts = [[torch.zeros_like(tensor[0]) for tensor in in_call[: workload.by_item]] for _ in range(parts)]
        self._filled: tuple[int, ...] = (0, 0)
        self._last: tuple[Tensors, Tensor] | None = None

    @property
    def kept(self) -> list[Tensor]:
        """The whole outputs, then the items, each in the order of their places."""
        wholes, parts = self._filled
        ordered = map(self._workload.ordered, self._wholes[:wholes])
        return [tensor for each in (*ordered, *self._parts[:parts]) for tensor in each]

    def hold(self, timing: int, xs: Tensors, result: Any) -> None:
        """Copy the result of a call on inputs; raises Incorrect if it has a wrong form."""
        y, of_inputs = result if self._workload.point.mode in TRAINED else (result, ())
        try:
            check_output(self._subject, xs, y, self._workload.direction)
        except Incorrect as error:
            raise Incorrect(f"{error} ({TIMED})") from None
        inputs = [*xs[: self._workload.by_item - 1], *self._subject.layer.parameters()]
        whole = (
            torch.zeros_like(like) if each is None else each for each, like in zip(of_inputs, inputs, strict=False)
        )
        _copy(self._held[timing], (y.detach(), *whole))
        self._last = (xs, y) if self._workload.point.mode == "forward" else None

    def keep(self, parts: Sequence[tuple[int, int, int]], wholes: Sequence[tuple[int, int]]) -> None:
        """Keep items and whole outputs of timings, each at a place; in mode forward the whole one is the last."""
        for place, timing, item in parts:
            _copy(self._parts[place], [tensor[item] for tensor in self._held[timing][: self._workload.by_item]])
        for place, timing in wholes:
            tensors = self._held[timing]
            if self._last is not None:
                xs, y = self._last
                tensors = [*tensors, *gradients(y, xs, self._subject.layer, self._workload.direction)]
            _copy(self._wholes[place], tensors)
        filled = zip(self._filled, (wholes, parts), strict=True)
        self._filled = tuple(max([count, *(place + 1 for place, *_ in kept)]) for count, kept in filled)
        self._last = None


def _copy(copies: Sequence[Tensor], tensors: Sequence[Tensor]) -> None:
    for copy, tensor in zip(copies, tensors, strict=True):
        copy.copy_(tensor)


def _below(number: int) -> int:
    """Return a random whole number below this one, from the system, which no code in this process can know before."""
    return int.from_bytes(os.urandom(8), "little") % number
