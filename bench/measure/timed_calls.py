"""The timed calls of a case: their inputs alternate, and of each timing one result is held, drawn at its end.

Whatever is called of torch while outputs are kept is bound here before any implementation is imported.
"""

import os
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench.measure import clock
from bench.measure.elements import Elements, at
from bench.measure.outputs import Incorrect, Output, check_output, check_plain, gradients, share_memory
from bench.measure.process_state import HOOKS, ProcessState
from bench.measure.threads import Threads, Used
from bench.measure.workload import TRAINED, Inputs, Subject, Tensors, Workload
from bench.plan.errors import NOT_FINITE
from bench.sampling.inputs import KEY_BITS, TIMED
from bench.sampling.rounds import Sample

LATER_SHARE, LATER_S = 0.2, 1e-3
"""The main thread's seconds until a result is held, beyond those that the clock has timed: at most LATER_SHARE of the
processor's seconds in a timing, and LATER_S.
Honest ones used 0.2 to 0.8 ms, which is 1 to 3 % where a call takes longer than a timing."""

CHECK_S = 2e-3
"""The seconds of the suite's own check of the process, before a result is touched, are none of these: 0.6 to 1.2 ms
were seen, and twice as much on a busy machine, where short layers were incorrect by them. No more are believed."""

Hold = Callable[[int, object], None]
"""It gets the number of a call and its result."""


class Held(NamedTuple):
    """Of a timing the number of the input of the call that is held, and the processor's seconds."""

    held: int
    used_s: float


_detached, _copied = Tensor.detach, Tensor.copy_


class TimedCalls:
    """Timings of one call; `reuses` says whether all calls return the same memory.

    `used` are the processor's seconds in the calls of all timings. `prepared_s` are those of other threads than the
    main one and OpenMP's in what calls need and is not timed. `apart_s` are the seconds of making that, and the inputs.
    """

    def __init__(
        self,
        call: clock.Call,
        inputs: Inputs,
        timer: clock.Timer,
        rng: random.Random,
        threads: Threads,
        *,
        reuses: bool,
    ) -> None:
        self._call = call
        self._inputs = inputs
        self._timer = timer
        self._rng = rng
        self._hooks = ProcessState((*HOOKS, ("the suite's own ", _own)))
        self._threads = threads
        self.reuses = reuses
        self.used = Used()
        self.prepared_s = self.apart_s = 0.0
        self._later: list[float] = []
        """Of each timing the main thread's seconds beyond its time and LATER_S, as a share of the processor's."""

    def of(self, call: clock.Call) -> "TimedCalls":
        """Return timings of another call of the same inputs, each result of which has memory of its own."""
        return TimedCalls(call, self._inputs, self._timer, self._rng, self._threads, reuses=False)

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

        `hold` gets the number of one call and its result. Which one is drawn when all have ended: nothing in the
        process says it before. If all calls return the same memory, the timing has parts, and it is the last call of
        one of them: `hold` may be called again. Raises LeftChanged or Incorrect if work that was put off may be done
        when a result is touched.
        """
        key = self._rng.getrandbits(KEY_BITS) if key is None else key
        while True:
            with suppress(clock.Void):
                return self._timing(call, int(min(calls, self.most_calls)), key, hold)

    def _timing(self, call: clock.Call, calls: int, key: int, hold: Hold | None) -> clock.Timing:
        begin_s = perf_counter()
        self._inputs.renew(calls, key, self._hold)
        self.apart_s += perf_counter() - begin_s
        total_s, host_s, made = 0.0, list[float](), 0
        for part, size in enumerate(self._parts(calls), start=1):
            results: list[object] = []
            before, begin_s = self._threads.read(), perf_counter()
            if host_s:  # a part before this one was on a GPU
                self._inputs.write(self._hold)
            clock.prepare(call, size)
            self.apart_s += perf_counter() - begin_s
            start = self._threads.read()
            self.prepared_s += start.since(before).others_s
            check = self._hooks.check
            taken = self._timer(call, size, results)
            used, begin_s = self._threads.read().since(start), thread_time()
            check()
            check_s = min(CHECK_S, thread_time() - begin_s)
            self.used = self.used.plus(used)
            is_lost = share_memory(self._plain_outputs(results)) and not self.reuses
            made += size
            if hold is not None and (part == 1 or (made < calls and not _below(part))):
                chosen = size - 1 if self.reuses or is_lost else _below(size)
                hold(made - size + chosen, results[chosen])
                # the clock's seconds have those in which the thread waited for its core
                timed_s = used.main_s if taken.host_s is not None else min(used.main_s, size * taken.call_s)
                later_s = thread_time() - start.main_s - timed_s - check_s - LATER_S
                self._later.append(later_s / used.all_s)
            self.reuses |= is_lost
            total_s += size * taken.call_s
            host_s += [] if taken.host_s is None else [size * taken.host_s]
        return clock.Timing(total_s / calls, sum(host_s) / calls if host_s else None)

    def _hold(self) -> None:
        """Hold a GPU with zeros as inputs: that is what work on a stream finds that doesn't wait for them."""
        self._timer.hold(self._inputs.clear)

    def _parts(self, calls: int) -> Iterator[int]:
        """Yield the calls of each part of a timing, which has one part unless all calls return the same memory.

        Then any call but the last ends a part with the same chance, one of a timing on average, whatever came before:
        so no call of a second part is free.
        """
        of = calls
        while calls:
            size = next((number for number in range(1, calls) if not _below(of)), calls) if self.reuses else calls
            calls -= size
            yield size

    def check_later(self) -> None:
        """Raise Incorrect if results are made after their timing, by whatever means."""
        if self._later and (share := statistics.median(self._later)) > LATER_SHARE:
            raise Incorrect(f"works when its output is kept: {share:.0%} of the work of its calls ({TIMED})")

    def _plain_outputs(self, results: Sequence[Any]) -> list[Tensor]:
        """Return the outputs among results that were not touched yet; raises Incorrect."""
        ys, of_inputs = [*results], []
        if self._inputs.with_directions:
            ys, of_inputs = [y for y, _ in results], [each for _, each in results]
        with in_timed_call():
            check_plain(ys, "output")
            check_plain(chain(*of_inputs), "gradient")
            check_plain(self._inputs.tensors, "input")
        return ys

    def sample(self, keys: Sequence[int], calls: int, outputs: "TimedOutputs") -> tuple[Sample, list[Held]]:
        """Return a sample with a timing of so many calls for each key, and what else is known of the timings."""
        timings = list[Held]()

        def timer(call: clock.Call, calls: int) -> clock.Timing:
            timing, held, before_s = len(timings), 0, self.used.all_s

            def hold(number: int, result: object) -> None:
                nonlocal held
                held, inputs = self._inputs.of_call(number)
                outputs.hold(timing, inputs, result, self._inputs.direction)

            taken = self.timing(call, calls, keys[timing], hold)
            timings.append(Held(held, self.used.all_s - before_s))
            return taken

        return clock.sample(self._call, timer, calls, len(keys)), timings


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
        whole = [_detached(y)]
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


def _own() -> dict[str, Any]:
    """Return what is called after a timing, before a result is kept."""
    called = {name: value for name, value in globals().items() if callable(value)}
    methods = {f"{of.__name__}.{name}": value for of in (TimedCalls, TimedOutputs) for name, value in vars(of).items()}
    return called | methods


def _copy(copies: Sequence[Tensor], tensors: Sequence[Tensor]) -> None:
    for copy, tensor in zip(copies, tensors, strict=True):
        _copied(copy, tensor)


def _below(number: int) -> int:
    """Return a random whole number below this one, from the system, which no code in this process can know before."""
    return int.from_bytes(os.urandom(8), "little") % number
