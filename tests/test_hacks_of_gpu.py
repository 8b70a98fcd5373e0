"""What would cheat a GPU's timers is found, on a GPU that is made up."""

import gc
import random
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench.measure import cuda, subjects, workload
from bench.measure.measured_case import LATE, LATE_S
from bench.measure.process_state import LeftChanged, ProcessState
from bench.measure.timed_calls import TimedCalls
from bench.plan.device import COLD, HOT
from impls import Adapt
from tests import hacks_of_gpu
from tests.make.adapters import each_call
from tests.make.points import point
from tests.make.simulated_gpu import Gpu, gpu

__all__ = ["gpu"]

BATCH, WORK_S = 2, 1e-4
TIMINGS, CALLS = 24, 2


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch, gpu: Gpu) -> Iterator[None]:
    """Restore a mutant's changes; a pause takes the simulated host's time, a thread works at once."""
    monkeypatch.setattr(torch.cuda.Event, "elapsed_time", torch.cuda.Event.elapsed_time)
    monkeypatch.setattr(time, "sleep", lambda seconds: setattr(gpu, "now_s", gpu.now_s + seconds))
    monkeypatch.setattr(threading, "Thread", _AtOnce)
    monkeypatch.setattr(hacks_of_gpu, "_real_ms", cuda._elapsed_ms)
    yield
    gc.enable()


class _Doubling(nn.Module):
    """Doubles its input, which takes WORK_S for a batch."""

    def __init__(self, gpu: Gpu) -> None:
        super().__init__()
        self._gpu = gpu

    def forward(self, x: Tensor) -> Tensor:
        """Return twice the contents of x's memory when the work begins."""
        y = self._gpu.seen(x) * 2
        self._gpu.launch(WORK_S * len(x) / BATCH)
        return y


class _AtOnce:
    """A thread that does its work when it is started."""

    def __init__(self, target: Callable[[], object], **_options: object) -> None:
        self.start = target


def seen(adapt: Adapt, gpu: Gpu, timing: str = COLD) -> set[str]:
    """Return the findings on an implementation during its timings and after them."""
    work = workload.make(point(batch=BATCH))
    inputs, found = subjects.Inputs(work), set[str]()
    implementation = adapt(_Doubling(gpu))

    def call() -> object:
        return implementation(*inputs.next())

    def ended(number: int, result: object) -> None:
        assert isinstance(result, Tensor)
        if not torch.equal(result, inputs.of_call(number)[1][0] * 2):
            found.add("output")

    timer = cuda.timer(timing)
    timed = TimedCalls(call, inputs, timer, random.Random(1), reuses=False)
    with torch.inference_mode():
        timed.timing(call, CALLS)
        gpu.watched = inputs.tensors
        gc.disable()
        state = ProcessState()
        try:
            for _ in range(TIMINGS):
                timed.timing(call, CALLS, ended=ended)
            state.check()
        except LeftChanged:
            found.add("state")
        if cuda.late_s(call, CALLS, timer.late_s) > LATE_S + LATE * CALLS * WORK_S:
            found.add("late")
    return found


@each_call
def honest(own: Any, x: Tensor) -> Tensor:
    """Work on another stream, which waits for this one and is joined."""
    with hacks_of_gpu._elsewhere(own, waits=True, is_joined=True):
        y: Tensor = own(x)
    return y


@pytest.mark.parametrize("timing", [COLD, HOT])
def test_nothing_is_found_of_honest_work(timing: str, gpu: Gpu) -> None:
    """On the current stream, or on another one that waits and is joined."""
    assert seen(lambda layer: layer, gpu, timing) == set()
    assert seen(honest, gpu, timing) == set()


FOUND_BY = {
    "hacks:side_stream": {"late"},
    "hacks_of_gpu:thread_with_a_stream": {"late"},
    "hacks_of_gpu:joins_if_looked_at": {"late"},
    "hacks:memo_by_address": {"output"},
    "hacks_of_gpu:works_in_the_hold": {"output"},
    "hacks_of_gpu:one_of_fifteen": {"output"},
    "hacks_of_gpu:half_while_held": {"output"},
    "hacks_of_gpu:half_after_the_warm_up": {"output"},
    "hacks_of_gpu:patches_events": {"state"},
    "hacks_of_gpu:leaves_its_stream": {"state", "output"},
}
"""What makes each a row without a time."""


@pytest.mark.parametrize("timing", [COLD, HOT])
@pytest.mark.parametrize("name", FOUND_BY)
def test_each_hack_is_found(name: str, timing: str, gpu: Gpu) -> None:
    """It is found by its outputs, by late work, or by its changes."""
    module, _, adapter = name.partition(":")
    assert seen(getattr(import_module(f"tests.{module}"), adapter), gpu, timing) == FOUND_BY[name]


def test_every_hack_has_its_test() -> None:
    """Those that need no stream are tried on the CPU."""
    on_cpu = {"tests.hacks:background_thread"}
    assert {f"tests.{name}" for name in FOUND_BY} | on_cpu == {*hacks_of_gpu.EXPECTED}
