"""One case in its own process: prepared, sampled when the parent asks, and finished.

The outputs of some calls are handed over for the judge: those of the first calls, parts of the outputs of many timed
calls, and that of a call after the last round.
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
"""A block of random size up to this is held, so that processes have different memory layouts."""

TOUCHED, TOUCHED_HUGE = 2, 1
"""After the first calls a block of this many times their memory is written and freed, if there is room for it. The
pages stay mapped, so timed calls have no page faults. With small pages and without it each fourth call of eager was
seen to take 40,000 page faults at 1024 tokens, and a third more time, because the allocator went on to new places. With
huge pages once or twice the memory made no difference: samples then take 0 to 3 faults in the median.
If the system must first make room for huge pages, it does so here: that was seen to take seconds."""

ENERGY_S = 1.0
"""The seconds of the calls whose energy is read: the counter moves in steps of 20 to 100 ms."""

INSPECTED = 2
"""The calls of an inspection: on a GPU the second one tells the memory."""

LATE, LATE_S = 0.02, 1e-4
"""The part of some calls, and the seconds, for which a GPU may go on after their stream is done."""


class MeasuredCase:
    """A case in this process; `outcome` is how it stands.

    Its methods raise Incorrect for an output of a wrong form, Fallback if another kernel runs than was asked for,
    LeftChanged if the implementation changed the state of the process, and whatever the implementation raises.
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
        """Whether the first calls have returned the same memory."""

    def prepare(self) -> Prepared:
        """Do what comes before the rounds, in this order; the outputs of the first calls are for the judge."""
        request = self.request
        self._set_up()
        self._work = workload.make(request.point, request.seed, request.given)
        import_s = self._import()
        remark = self._build()
        calls_s = self._first_calls_in_kept_memory()
        self._inputs = subjects.Inputs(self._work)
        self._call = subjects.step(self._subject, self._work, self._inputs)
        if request.thorough:
            self._inspect()
        if request.point.timing == GRAPH:
            self._capture()
        self._warm_up(calls_s)
        self._states = device(request.point.device).states()
        self._state = ProcessState()
        metrics, pace = self.outcome.metrics, self._pace
        return Prepared(metrics, pace.call_s, pace.calls, remark, self._timed.reuses, import_s)

    def _set_up(self) -> None:
        """Set what holds for the whole process: its core, threads and device, and where its memory begins."""
        request, name = self.request, self.request.implementation
        self._channel.announce("preparation")
        if request.cache:
            os.environ[compilation.CACHE] = request.cache
        self._core = request.core
        if request.core is not None and not name_of(name).entry.compiles:
            run_on(request.core)  # one of ours that compiles uses all cores for that, as with its user
        workload.set_up(request.point)
        self._layout = torch.empty(self._rng.randrange(1, LAYOUT_BYTES), dtype=torch.uint8)

    def _import(self) -> float:
        """Import the implementation, and return the seconds that it took; raises `impls.Unresolved` without one."""
        name = self.request.implementation
        activate(name)
        self._channel.announce("import")
        begin, state = perf_counter(), ProcessState()
        impls.resolve(name)
        if changes := state.changes():
            raise LeftChanged(f"{changes} (when it was imported)")
        import_s = perf_counter() - begin
        self._channel.announce("preparation")
        return import_s

    def _build(self) -> str:
        """Build the implementation on its own copy of the weights; one in another runtime for the point's inputs.

        Return what such a runtime says about its precision.
        """
        point, name = self.request.point, self.request.implementation
        with kept(), compilation.no_eager_fallback():
            if impls.compiles(name):
                with suppress(Exception):  # the first call will raise the same error
                    compilation.warm_toolchain(device(point.device).place)
            self._subject = subjects.subject(self._work, name)
            self._work = packed.formed(self._work, self._subject)
            if isinstance(self._subject.function, impls.Runtime):
                return self._build_runtime(self._subject.function)
        return ""

    def _build_runtime(self, function: impls.Runtime) -> str:
        self._channel.announce("build")
        start = perf_counter()
        with self._work.gradient_mode():
            function.build(*self._work.inputs())
        built_s = perf_counter() - start
        self.outcome.metrics |= {"compile_s": built_s, "compile_cached": False}
        return inspection.narrower(function, self.request.point.dtype)

    def _first_calls_in_kept_memory(self) -> list[float]:
        """Make the first calls, and touch as much memory as they took; return the seconds of ordinary calls."""
        point = self.request.point
        held_bytes = psutil.Process().memory_info().rss
        with explained():
            calls_s = self._first_calls()
        if point.kind.is_in_host_memory and point.allocator == RETAINED:
            times = TOUCHED if facts.huge_pages_missing() else TOUCHED_HUGE
            memory.touch(times * (psutil.Process().memory_info().rss - held_bytes))
        if self.request.core is not None:
            run_on(self.request.core)
        return calls_s

    def _first_calls(self) -> list[float]:
        """Make the calls that are checked before the rounds; return the seconds of those that compiled nothing.

        If a core that returns another form than it must makes a call fail, that is what Incorrect says.
        """
        names = [name for name in (NORMAL, PEAKED) if name in self.request.inputs]
        try:
            calls_s = [self._first_call(name, is_first=name == names[0]) for name in names]
        except Exception as error:
            if not is_out_of_memory(error) and (mistake := outputs.mistake_of_core(self._subject, self._work)):
                raise Incorrect(mistake) from error
            raise
        return [each for each in calls_s if each is not None]

    def _first_call(self, name: str, *, is_first: bool) -> float | None:
        """Make a call, and hand its output over; return its seconds, None if it has compiled."""
        self._channel.announce("first call" if is_first else "correctness check")
        before, on = compilation.graphs(), device(self.request.point.device)
        with kept(), compilation.no_eager_fallback():
            inputs = tuple(each.clone() for each in self._work.inputs(self.request.inputs[name]))
            free_bytes = on.free_bytes()
            start = perf_counter()
            output = outputs.compute(self._subject, self._work, inputs)
            elapsed_s = perf_counter() - start
        if is_first and free_bytes is not None:
            self.outcome.metrics["device_used_bytes"] = max(0, free_bytes - (on.free_bytes() or 0))
        has_compiled = is_first and self._has_compiled(before, elapsed_s)
        self._check_form(name, output)
        outputs.write(self._work.handed_over(output.tensors), self.request.files[name])
        self._reuses |= self._like is not None and outputs.share_memory([self._like.y, output.y])
        self._like = output
        return None if has_compiled else elapsed_s

    def _has_compiled(self, before: tuple[int, int], elapsed_s: float) -> bool:
        """Return whether the first call has compiled, and keep what it took; raises Fallback if it must and didn't."""
        graphs, cached = (now - earlier for now, earlier in zip(compilation.graphs(), before, strict=True))
        if graphs:
            self.outcome.metrics |= {"graphs": graphs, "compile_s": elapsed_s, "compile_cached": cached > 0}
        elif impls.compiles(self.request.implementation):
            self.outcome.metrics["graphs"] = 0
            raise Fallback("torch.compile compiled no graph, so the layer would run eagerly")
        return bool(graphs)

    def _inspect(self) -> None:
        """Record the kernels and the memory of a call; raises Fallback if another kernel ran than was asked for."""
        self._channel.announce("inspection")
        metrics = self.outcome.metrics
        self._inputs.renew(INSPECTED, self._rng.getrandbits(KEY_BITS))  # no answer is known for these
        with kept(), self._work.gradient_mode():
            metrics |= inspection.metrics(self._call, self._subject, self._work)
            chosen: tuple[str, ...] = ()
            if self._work.point.mode == "backward":  # the forward pass chooses the kernel
                function, inputs = self._subject.function, self._inputs.next()
                chosen = inspection.inspect(lambda: function(*inputs), device(self._work.point.device)).kernels
        metrics["held_bytes"] = memory.held_bytes(self._own_tensors())
        if fallback := inspection.fallback(self.request.implementation, (*metrics["kernels"], *chosen)):
            raise Fallback(fallback)

    def _own_tensors(self) -> Iterator[Tensor]:
        """Yield the tensors that are here for any implementation."""
        yield from (self._layout, self._work.values, self._work.direction, *self._inputs.tensors)
        assert self._like is not None
        yield from (*self._like.inputs, *self._like.tensors)
        for layer in (self._work.layer, self._subject.layer):
            yield from (*layer.parameters(), *layer.buffers())

    def _capture(self) -> None:
        """Let the timed calls be replays of a graph."""
        self._channel.announce("capture")
        if self._work.layout.lengths:
            raise impls.Unsupported("a CUDA graph has the lengths of one batch, but each timing has others")
        graph = Graph(self._subject, self._work, self._inputs)
        self._call, self._reuses = graph, False  # each result of a replay has memory of its own
        self.outcome.metrics["reserved_bytes"] = graph.reserved_bytes

    def _warm_up(self, calls_s: list[float]) -> None:
        """Warm up, and set the conditions of samples: the gradient mode, no compilation, no garbage collection."""
        self._channel.announce("warm-up")
        point = self._work.point
        self._timer = device(point.device).timer(point.timing)
        self._timed = TimedCalls(self._call, self._inputs, self._timer, self._rng, reuses=self._reuses)
        self._sampling.enter_context(self._work.gradient_mode())
        self._sampling.enter_context(compilation.frozen())
        with kept():
            previous_s = calls_s[-1] if calls_s and point.kind.is_timed_by_host else None
            limits = clock.overhead_s(), self.request.warm_up_s
            self._pace = clock.warm_up(
                self._call, self._timed.timing, *limits, previous_s, lambda: self._timer.most_calls
            )
        self.outcome.metrics |= {"calls_per_timing": self._pace.calls, "settled": self._pace.settled}
        if point.timing != HOST:
            self.outcome.metrics["event_s"] = cuda.event_s()
        gc.collect()
        gc.disable()

    def sample(self, request: Sample) -> Sampled:
        """Return one sample; a call of each timing is offered to the outputs for the judge."""
        keys = request.keys
        self._move(request.core)
        if self._outputs is None:
            self._outputs = self._memory_for(len(keys))
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

    def _memory_for(self, timings: int) -> TimedOutputs:
        """Return memory for the outputs of timed calls, if samples have so many timings."""
        assert self._like is not None
        number = kept_of(self.request.point, timings, self._pace.call_s)
        return TimedOutputs(self._subject, self._work, self._like, number)

    def finish(self, request: Finish) -> Outcome:
        """End the rounds: hand over the last outputs, read the energy of a call, look for late work."""
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
        if self.request.thorough and work.point.mode != "backward":  # with which the forward pass would count
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
        """Run on another core from now on; raises LeftChanged if something else was changed."""
        if core is not None and core != self._core:
            self._state.check()
            run_on(core)
            self._core, self._state = core, ProcessState()

    def _check_late_work(self, call_s: float) -> None:
        """Raise Incorrect if a call's work goes on after its stream is done: events would not time it."""
        most = self._pace.calls if self._work.point.mode == "backward" else cuda.MOST_CALLS  # their graphs are held
        calls = int(min(most, self._timer.most_calls))
        late_s = cuda.late_s(self._call, calls, self._timer.late_s)
        if late_s > LATE_S + LATE * calls * call_s:
            raise Incorrect(
                f"works on another stream: the device is busy for {late_s:.2g} s after the stream of {calls} calls"
            )

    def _energy_j(self, call_s: float) -> float | None:
        """Return the joules of one of the calls that follow each other for ENERGY_S; None without a counter."""
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
    """Let all threads of this process run on one core alone: those that a row has started as well, on Linux."""
    for each in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(each.name), {core})
