"""One case in its own process: prepare it, take samples on request, and finish it.

The judge gets the outputs of the first calls, of parts of many timed calls, and of one call after the last round.
"""

import gc
import math
import os
import random
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from time import perf_counter

import psutil
import torch
from torch import Tensor

import impls
from bench.machine import facts
from bench.measure import (
    clock,
    compilation,
    cuda,
    forking,
    inspection,
    memory,
    outputs,
    packed,
    subjects,
    workload,
)
from bench.measure.devices import device
from bench.measure.failure import is_out_of_memory
from bench.measure.graphs import Graph
from bench.measure.outputs import Fallback, Incorrect, Output
from bench.measure.process_state import LeftChanged, ProcessState, kept
from bench.measure.timed_calls import TimedCalls, TimedOutputs
from bench.plan.case import RETAINED
from bench.plan.device import GRAPH, HOST
from bench.sampling.inputs import AFTERWARDS, KEY_BITS, NORMAL, PEAKED, TIMED
from bench.sampling.judged import kept_of
from bench.sampling.requests import Finish, Outcome, Prepare, Prepared, Sample, Sampled
from impls.attend.sdpa import explained
from impls.catalogue import name_of
from impls.lookup import activate

LAYOUT_BYTES = 1 << 16
"""The most bytes of a held block of random size, by which processes have different memory layouts."""

TOUCHED, TOUCHED_HUGE = 2, 1
"""After the first calls a block of this many times their memory is written and freed, if there is room for it. Its
pages stay mapped, so timed calls have no page faults. Without it and with small pages, every fourth call of eager took
40,000 page faults at 1024 tokens and a third more time, because the allocator moved on to new addresses. With huge
pages one block is enough: samples then have 0 to 3 faults in the median. The system may need seconds to make room for
huge pages, which it does here."""

ENERGY_S = 1.0
"""The seconds of calls over which energy is read, because the counter moves in steps of 20 to 100 ms."""

INSPECTED = 3
"""The calls of an inspection: for kernels, for memory, and for the forward pass of a backward one."""

LATE, LATE_S = 0.02, 1e-4
"""A GPU may work after the stream of some calls for this share of their time plus this many seconds."""


class MeasuredCase:
    """A case in this process; `outcome` is its state so far.

    Its methods raise Incorrect for an output of a wrong form, Fallback if a kernel other than the required one runs,
    LeftChanged if the implementation changed process-wide settings, and any error of the implementation.
    """

    def __init__(self, request: Prepare, channel: forking.Channel) -> None:
        self.outcome = Outcome()
        self.request = request
        self._channel = channel
        self._rng = random.Random(request.order_seed)  # noqa: S311 - an order, not a secret
        self._sampling = ExitStack()
        self._hosts_s: list[float] = []
        self._like: Output | None = None
        self._outputs: TimedOutputs | None = None
        self._reuses = False
        """Whether calls return the same memory."""

    def prepare(self) -> Prepared:
        """Do all that precedes the rounds, in this order; the outputs of the first calls go to the judge."""
        request = self.request
        self._set_up()
        self._work = workload.make(request.point, request.seed, request.given)
        self._import()
        self._build()
        self._first_calls_in_kept_memory()
        self._inputs = subjects.Inputs(self._work)
        self._call = subjects.step(self._subject, self._work, self._inputs)
        if request.thorough:
            self._inspect()
        if request.point.timing == GRAPH:
            self._capture()
        self._warm_up()
        self._states = device(request.point.device).states()
        self._state = ProcessState()
        metrics, pace = self.outcome.metrics, self._pace
        return Prepared(metrics, pace.call_s, pace.calls, self._timed.reuses)

    def _set_up(self) -> None:
        """Set the core, threads and device of the process, and shift its memory by a random block."""
        request, name = self.request, self.request.implementation
        self._channel.announce("preparation")
        if request.cache:
            os.environ[compilation.CACHE] = request.cache
        self._core = request.core
        if request.core is not None and not name_of(name).entry.compiles:
            run_on(request.core)  # compiling uses all cores, as it does for a user
        workload.set_up(request.point)
        self._layout = torch.empty(self._rng.randrange(1, LAYOUT_BYTES), dtype=torch.uint8)

    def _import(self) -> None:
        """Import the implementation; raises `impls.Unresolved`."""
        name = self.request.implementation
        activate(name)
        self._channel.announce("import")
        state = ProcessState()
        impls.resolve(name)
        if changes := state.changes():
            raise LeftChanged(f"{changes} (when it was imported)")
        self._channel.announce("preparation")

    def _build(self) -> None:
        """Build the implementation on its own copy of the weights; another runtime also for the point's inputs."""
        point, name = self.request.point, self.request.implementation
        with kept(), compilation.no_eager_fallback():
            if impls.compiles(name):
                with suppress(Exception):  # the first call will raise the same error
                    compilation.warm_toolchain(device(point.device).place)
            self._subject = subjects.subject(self._work, name)
            self._work = packed.formed(self._work, self._subject)
            if isinstance(self._subject.function, impls.Runtime):
                self._build_runtime(self._subject.function)

    def _build_runtime(self, function: impls.Runtime) -> None:
        self._channel.announce("build")
        start = perf_counter()
        with self._work.gradient_mode():
            function.build(*self._work.inputs())
        built_s = perf_counter() - start
        self.outcome.metrics |= {"compile_s": built_s, "compile_cached": False}

    def _first_calls_in_kept_memory(self) -> None:
        """Make the first calls, and touch as much memory as they took."""
        point = self.request.point
        held_bytes = psutil.Process().memory_info().rss
        with explained():
            self._first_calls()
        if point.kind.is_in_host_memory and point.allocator == RETAINED:
            times = TOUCHED if facts.huge_pages_missing() else TOUCHED_HUGE
            memory.touch(times * (psutil.Process().memory_info().rss - held_bytes))
        if self.request.core is not None:
            run_on(self.request.core)

    def _first_calls(self) -> None:
        """Make the calls that are checked before the rounds.

        If a call fails because the core's result has a wrong form, raises Incorrect with that reason.
        """
        names = [name for name in (NORMAL, PEAKED) if name in self.request.inputs]
        try:
            for name in names:
                self._first_call(name, is_first=name == names[0])
        except Exception as error:
            if not is_out_of_memory(error) and (mistake := outputs.mistake_of_core(self._subject, self._work)):
                raise Incorrect(mistake) from error
            raise

    def _first_call(self, name: str, *, is_first: bool) -> None:
        """Make a call, and hand its output over."""
        self._channel.announce("first call" if is_first else "correctness check")
        before = compilation.graphs()
        with kept(), compilation.no_eager_fallback():
            inputs = tuple(each.clone() for each in self._work.inputs(self.request.inputs[name]))
            start = perf_counter()
            output = outputs.compute(self._subject, self._work, inputs)
            elapsed_s = perf_counter() - start
        if is_first:
            self._note_compilation(before, elapsed_s)
        self._earlier_s = elapsed_s if self._work.point.kind.is_timed_by_host else math.inf
        self._check_form(name, output)
        outputs.write(self._work.handed_over(output.tensors), self.request.files[name])
        self._reuses |= self._like is not None and outputs.share_memory([self._like.y, output.y])
        self._like = output

    def _note_compilation(self, before: tuple[int, int], elapsed_s: float) -> None:
        """Record the time of the first call if it compiled; raises Fallback if it should have but didn't."""
        graphs, cached = (now - earlier for now, earlier in zip(compilation.graphs(), before, strict=True))
        if graphs:
            self.outcome.metrics |= {"graphs": graphs, "compile_s": elapsed_s, "compile_cached": cached > 0}
        elif impls.compiles(self.request.implementation):
            self.outcome.metrics["graphs"] = 0
            raise Fallback("torch.compile compiled no graph, so the layer would run eagerly")

    def _inspect(self) -> None:
        """Record the kernels and the memory of a call; raises Fallback if the required kernel didn't run."""
        self._channel.announce("inspection")
        metrics = self.outcome.metrics
        self._inputs.renew(INSPECTED, self._rng.getrandbits(KEY_BITS))  # values that no call has seen
        with kept(), self._work.gradient_mode():
            metrics |= inspection.metrics(self._call, self._subject, self._work)
            chosen: tuple[str, ...] = ()
            if self._work.point.mode == "backward":  # the forward pass chooses the kernel
                function, inputs, on = self._subject.function, self._inputs.next(), device(self._work.point.device)
                chosen = inspection.kernels(inspection.profiled(lambda: function(*inputs), on), on.kind)
        metrics["held_bytes"] = memory.held_bytes(self._own_tensors())
        if fallback := inspection.fallback(self.request.implementation, (*metrics["kernels"], *chosen)):
            raise Fallback(fallback)

    def _own_tensors(self) -> Iterator[Tensor]:
        """Yield the tensors that the suite itself holds for any implementation."""
        yield from (self._layout, self._work.values, self._work.direction, *self._inputs.tensors)
        assert self._like is not None
        yield from (*self._like.inputs, *self._like.tensors)
        for layer in (self._work.layer, self._subject.layer):
            yield from (*layer.parameters(), *layer.buffers())

    def _capture(self) -> None:
        """Capture a CUDA graph, whose replays are the timed calls."""
        self._channel.announce("capture")
        if self._work.lengths and self._work.layout.lengths:
            raise impls.Unsupported("a CUDA graph has the lengths of one batch, but each timing has others")
        self._call = Graph(self._subject, self._work, self._inputs)
        self._reuses = False  # each result of a replay has memory of its own

    def _warm_up(self) -> None:
        """Set the gradient mode, forbid compilation, warm up, and turn garbage collection off."""
        self._channel.announce("warm-up")
        point = self._work.point
        self._timer = device(point.device).timer(point.timing)
        self._timed = TimedCalls(self._call, self._inputs, self._timer, self._rng, reuses=self._reuses)
        self._sampling.enter_context(self._work.gradient_mode())
        self._sampling.enter_context(compilation.frozen())
        with kept():
            self._pace = clock.warm_up(
                self._call, self._timed.timing, self.request.warm_up_s, lambda: self._timer.most_calls, self._earlier_s
            )
        self.outcome.metrics |= {"calls_per_timing": self._pace.calls, "settled": self._pace.settled}
        if point.timing != HOST:
            self.outcome.metrics["event_s"] = cuda.event_s()
        gc.collect()
        gc.disable()

    def sample(self, request: Sample) -> Sampled:
        """Return one sample, and offer one call of each timing for the judge."""
        keys = request.keys
        self._move(request.core)
        if self._outputs is None:
            assert self._like is not None
            number = kept_of(self.request.point, len(keys), self._pace.call_s)
            self._outputs = TimedOutputs(self._subject, self._work, self._like, number)
        self._outputs.has_new = False
        sampled = self._timed.sample(keys, self._pace.calls, self._outputs)
        if self._states is not None:
            self._states.read()
        self._hosts_s += [] if sampled.host_s is None else [sampled.host_s]
        self._state.check()
        if forking.has_children():
            raise LeftChanged("left a process running that it started, which could work for it between timings")
        if self._outputs.has_new and self._inputs.are_edited():
            raise Incorrect(f"edited its input in place ({TIMED})")
        return sampled

    def finish(self, request: Finish) -> Outcome:
        """End the rounds: hand over the last outputs, measure the energy of a call, and look for late work."""
        call_s, files = request.call_s, request.files
        self._move(request.core)
        work, on = self._work, device(self.request.point.device)
        self._channel.announce("last calls")
        if self._inputs.are_edited():
            raise Incorrect(f"edited its input in place ({TIMED})")
        if not outputs.has_weights_of(self._subject, work):
            raise Incorrect(f"edited the layer's weights ({TIMED})")
        fresh = outputs.compute(self._subject, work, self._inputs.holding(self.request.inputs[AFTERWARDS]))
        self._check_form(AFTERWARDS, fresh)
        outputs.write(self._outputs.kept() if self._outputs else [], files[TIMED])
        outputs.write(work.handed_over(fresh.tensors), files[AFTERWARDS])
        if self.request.thorough and work.point.mode != "backward":  # energy would include the forward pass
            self.outcome.metrics["energy_j"] = self._energy_j(call_s)
        if self._hosts_s:
            self.outcome.metrics["host_s"] = statistics.median(self._hosts_s)
        if self._states is not None:
            self.outcome.metrics |= self._states.metrics
        if not on.kind.is_timed_by_host:
            self._check_late_work(call_s)
        self._state.check()
        return self.outcome

    def _move(self, core: int | None) -> None:
        """Move to another core; raises LeftChanged if a setting was changed before."""
        if core is not None and core != self._core:
            self._state.check()
            run_on(core)
            self._core, self._state = core, ProcessState()

    def _check_late_work(self, call_s: float) -> None:
        """Raise Incorrect if work goes on after the stream is done, because events don't time it."""
        most = self._pace.calls if self._work.point.mode == "backward" else cuda.MOST_CALLS  # autograd graphs are held
        calls = int(min(most, self._timer.most_calls))
        late_s = cuda.late_s(self._call, calls, self._timer.late_s)
        if late_s > LATE_S + LATE * calls * call_s:
            raise Incorrect(
                f"works on another stream: the device is busy for {late_s:.2g} s after the stream of {calls} calls"
            )

    def _energy_j(self, call_s: float) -> float | None:
        """Return the joules per call over ENERGY_S seconds of calls; None without a counter."""
        on, calls = device(self.request.point.device), math.ceil(ENERGY_S / call_s)
        begin_j = on.energy_j()
        if begin_j is None:
            return None
        self._channel.announce("energy")
        for _ in range(calls):
            self._call()
        on.synchronize()
        end_j = on.energy_j()
        return (end_j - begin_j) / calls if end_j is not None and end_j > begin_j else None

    def _check_form(self, check: str, output: Output) -> None:
        inputs = self._work.inputs(self.request.inputs[check])
        try:
            outputs.check_form(self._subject, self._work, inputs, output)
        except Incorrect as error:
            raise Incorrect(f"{error} ({check})") from None


def run_on(core: int) -> None:
    """Pin all threads of this process to one core, including threads that an implementation has started; Linux only."""
    for each in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # the thread has ended
            os.sched_setaffinity(int(each.name), {core})
