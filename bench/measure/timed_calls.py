"""The timed calls of a case: their inputs vary, and the outputs of some are kept for the judge.

These are drawn with the system's randomness after a timing was read, so no call can know that it is judged. The draw
runs in the implementation's process, so it catches wrong kernels and shortcuts, but not code that inspects the suite.
"""

import random
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from bench.measure import clock
from bench.measure.layer import TRAINED, Tensors
from bench.measure.outputs import Incorrect, Output, check_output, check_plain, gradients, share_memory
from bench.measure.process_state import ProcessState, hooks
from bench.measure.subjects import Inputs, Subject
from bench.measure.workload import Workload
from bench.sampling.inputs import KEY_BITS, TIMED, TimedCall
from bench.sampling.judged import Kept
from bench.sampling.requests import Sampled

SYSTEM = random.SystemRandom()
"""The random generator of the draw, bound before any implementation is imported."""

Ended = Callable[[int, object], None]
"""A function of the number and the result of a call that is drawn after all calls of a timing have ended."""


class TimedCalls:
    """Timings of one call; `reuses` says whether all calls return the same memory.

    `used_s` is the processor time in the calls of all timings, in seconds.
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

    def timing(self, call: clock.Call, calls: int, key: int | None = None, ended: Ended | None = None) -> clock.Timing:
        """Return a timing on the inputs of a key, or of a random one; repeat it while it is void.

        `ended` gets a drawn call, or the last if all return the same memory. Raises Incorrect for another class.
        """
        key = self._rng.getrandbits(KEY_BITS) if key is None else key
        while True:
            with suppress(clock.Void):
                return self._timing(call, int(min(calls, self._timer.most_calls)), key, ended)

    def _timing(self, call: clock.Call, calls: int, key: int, ended: Ended | None) -> clock.Timing:
        self._inputs.renew(calls, key, lambda: self._timer.hold(self._inputs.clear))
        results: list[object] = []
        clock.prepare(call, calls)
        state = ProcessState(hooks)
        begin_s = time.process_time()
        taken = self._timer(call, calls, results)
        self.used_s += time.process_time() - begin_s
        state.check()  # before anything touches a result: a hook may do deferred work
        self.reuses |= share_memory(self._plain_outputs(results))
        if ended is not None:
            number = calls - 1 if self.reuses else SYSTEM.randrange(calls)
            ended(number, results[number])
        return taken

    def _plain_outputs(self, results: Sequence[Any]) -> list[Tensor]:
        """Return the outputs among untouched results; raises Incorrect unless all are plain tensors."""
        ys, of_inputs = [*results], list[object]()
        if self._inputs.with_directions:
            ys, of_inputs = [y for y, _ in results], [each for _, gradients in results for each in gradients]
        try:
            check_plain(ys, "output")
            check_plain(of_inputs, "gradient")
        except Incorrect as error:
            raise Incorrect(f"{error} ({TIMED})") from None
        return ys

    def sample(self, keys: Sequence[int], calls: int, outputs: "TimedOutputs") -> Sampled:
        """Return a sample with a timing of `calls` calls for each key, and offer one call of each to the outputs."""
        before, used_s = resource.getrusage(resource.RUSAGE_SELF), self.used_s
        taken = [self._of_key(key, calls, outputs) for key in keys]
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before.ru_nivcsw
        least = min(taken, key=attrgetter("call_s"))
        return Sampled([each.call_s for each in taken], switches, self.used_s - used_s, least.host_s)

    def _of_key(self, key: int, calls: int, outputs: "TimedOutputs") -> clock.Timing:
        def ended(number: int, result: object) -> None:
            place, xs = self._inputs.of_call(number)
            outputs.offer(TimedCall(key, place), xs, result, self._inputs.direction)

        return self.timing(self._call, calls, key, ended)


class TimedOutputs:
    """The outputs of timed calls for the judge: single items, and whole outputs in modes with gradients.

    In mode forward a call returns no gradients, so they are computed when an output is kept whole.
    """

    def __init__(self, subject: Subject, workload: Workload, like: Output, number: Kept) -> None:
        self._subject = subject
        self._workload = workload
        self._of_timing = number.of_timing
        of_call = like.tensors if workload.point.mode in TRAINED else like.tensors[:1]
        self._items = _Drawn(workload.item(of_call, 0), number.items)
        self._wholes = _Drawn(workload.handed_over(like.tensors), number.wholes)
        self.has_new = False
        """Whether an output was kept since this was set to False."""

    def offer(self, call: TimedCall, xs: Tensors, result: Any, direction: Tensor) -> None:
        """Keep the output of a call on `xs`, or some of its items, if they are drawn.

        `direction` is the gradient of the output. Raises Incorrect for an output of a wrong form.
        """
        workload = self._workload
        y, found = result if workload.point.mode in TRAINED else (result, ())
        try:
            check_output(self._subject, xs, y, workload.direction)
        except Incorrect as error:
            raise Incorrect(f"{error} ({TIMED})") from None
        of_call = (Tensor.detach(y), *self._gradients(xs, found))
        batch = workload.point.batch
        for item in SYSTEM.sample(range(batch), min(batch, self._of_timing)):
            if (memory := self._items.place(call._replace(item=item))) is not None:
                self._copy(memory, workload.item(of_call, item))
        if (memory := self._wholes.place(call)) is not None:
            if workload.point.mode not in TRAINED:
                of_call = (*of_call, *gradients(y, xs, self._subject.weights, direction))
            self._copy(memory, workload.handed_over(of_call))

    def _gradients(self, xs: Tensors, found: Sequence[Tensor | None]) -> Sequence[Tensor]:
        """Return the gradients of inputs and of every weight, with zeros where a call has returned none."""
        if not found:
            return ()
        of_call = iter(found)
        every: list[Tensor] = []
        for like in (*xs[: self._workload.by_item - 1], *self._subject.weights):
            gradient = next(of_call) if like.requires_grad else None
            every.append(torch.zeros_like(like) if gradient is None else gradient)
        return every

    def _copy(self, memory: Sequence[Tensor], tensors: Sequence[Tensor]) -> None:
        for copy, tensor in zip(memory, tensors, strict=True):
            copy.copy_(tensor)
        self.has_new = True

    def kept(self) -> list[list[Any]]:
        """Return the key, number and item of each kept call, and the tensors of its output."""
        return [[*call, tensors] for drawn in (self._wholes, self._items) for call, tensors in drawn.kept()]


class _Drawn:
    """Memory for a uniform random sample of the offered outputs.

    It is allocated before any output is kept, so that keeping one doesn't change the memory layout. Source of the draw:
    Vitter, Random sampling with a reservoir, ACM TOMS 1985, algorithm R.
    """

    def __init__(self, like: Sequence[Tensor], size: int) -> None:
        self._memory = [[torch.zeros_like(each) for each in like] for _ in range(size)]
        self._calls: list[TimedCall] = []
        self._offered = 0

    def place(self, call: TimedCall) -> list[Tensor] | None:
        """Return the memory for a call's output; None if the call isn't drawn."""
        place = self._offered if self._offered < len(self._memory) else SYSTEM.randrange(self._offered + 1)
        self._offered += 1
        if place >= len(self._memory):
            return None
        self._calls[place : place + 1] = [call]
        return self._memory[place]

    def kept(self) -> list[tuple[TimedCall, list[Tensor]]]:
        """Return the kept calls with their tensors."""
        return [*zip(self._calls, self._memory, strict=False)]
