"""Timed calls: which of them are kept. How they are judged is tested where a case is measured."""

import random
from collections import Counter
from collections.abc import Callable

import pytest
import torch

from bench.measure import clock, cuda, outputs, subjects, workload
from bench.measure.timed_calls import TimedCalls, TimedOutputs
from bench.plan.device import COLD, HOT
from bench.sampling.inputs import TimedCall
from bench.sampling.judged import Kept
from tests.make.points import point
from tests.make.simulated_gpu import Gpu, gpu

__all__ = ["gpu"]


ALL = Kept(items=9, of_timing=2, wholes=0)


def offered(number: Kept) -> tuple[TimedOutputs, Callable[[int, torch.Tensor], None]]:
    """Return the outputs of timed calls, and a function that offers them an output under a key."""
    work = workload.make(point())
    xs, like = work.inputs(), torch.zeros_like(work.direction)
    timed = TimedOutputs(subjects.subject(work, "eager"), work, outputs.Output(xs, like), number)
    return timed, lambda key, y: timed.offer(TimedCall(key, 0), xs, y, work.direction)


def test_all_calls_have_the_same_chance_to_be_kept() -> None:
    """Of 40 samples the first is kept as often as the last, and the output is the named call's."""
    drawn: Counter[int] = Counter()
    like = torch.zeros_like(workload.make(point()).direction)
    for _ in range(200):
        timed, offer = offered(Kept(items=10, of_timing=1, wholes=0))
        for key in range(40):
            offer(key, torch.full_like(like, key))
        assert all(bool((tensors[0] == key).all()) for key, *_, tensors in timed.kept())
        drawn.update(key for key, *_ in timed.kept())
    assert sum(drawn.values()) == 2000
    assert 20 < min(drawn.values()) <= max(drawn.values()) < 85  # 50 on average, with a standard deviation of 6


def timed_calls(call: Callable[[torch.Tensor], object], *, reuses: bool) -> tuple[TimedCalls, Callable[[], object]]:
    """Return timed calls of what gets the next input, and the call."""
    inputs = subjects.Inputs(workload.make(point()))

    def of_next() -> object:
        return call(*inputs.next())

    timer = clock.host
    return TimedCalls(of_next, inputs, timer, random.Random(1), reuses=reuses), of_next


CALLS = 5


@pytest.mark.parametrize("reuses", [False, True])
def test_any_call_of_a_timing_may_be_held(reuses: bool) -> None:
    """Its result is the one that it has returned. A timing has as many calls as it is asked for.

    Each has the same chance; in one memory it is the last.
    """
    made: list[torch.Tensor] = []
    kept: list[tuple[int, float]] = []
    held: Counter[int] = Counter()
    buffer = torch.zeros(1)

    def call(_x: torch.Tensor) -> torch.Tensor:
        made.append(buffer.fill_(len(made)) if reuses else torch.full((1,), float(len(made))))
        return made[-1]

    timed, of_next = timed_calls(call, reuses=reuses)
    for _ in range(1000):
        made.clear()
        kept.clear()
        timed.timing(of_next, CALLS, ended=lambda number, y: kept.append((number, float(y))))  # type: ignore[arg-type]
        assert len(made) == CALLS
        assert all(number == value for number, value in kept)
        held[kept[-1][0]] += 1
    expected = [0.0] * 4 + [1.0] if reuses else [0.2] * 5
    assert [held[number] / 1000 for number in range(CALLS)] == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("reuses", [False, True])
def test_inputs_on_a_gpu_are_there_only_behind_a_hold(reuses: bool, gpu: Gpu) -> None:
    """Work on another stream that doesn't wait finds zeros, in each part of a timing."""
    work, other = workload.make(point()), gpu.stream()
    inputs = subjects.Inputs(work)
    memory, early = torch.zeros(1), list[bool]()

    def call() -> torch.Tensor:
        (x,) = inputs.next()
        assert gpu.seen(x).any()
        with gpu.on(other):
            early.append(bool(gpu.seen(x).any()))
        gpu.launch(1e-5)
        return memory.view_as(memory) if reuses else torch.zeros(1)

    timed = TimedCalls(call, inputs, cuda.timer(HOT), random.Random(1), reuses=reuses)
    timed.timing(call, CALLS)
    early.clear()
    gpu.watched = inputs.tensors
    for _ in range(4):
        timed.timing(call, CALLS)
    assert early == [False] * 4 * CALLS
    assert timed.reuses is reuses


def test_a_timing_has_no_more_calls_than_fit_behind_one_hold(gpu: Gpu) -> None:
    """The inputs of the others would be there before a second hold begins."""
    timer, made, held = cuda.timer(COLD), list[torch.Tensor](), list[int]()
    timer.most_calls = 3

    def call() -> torch.Tensor:
        gpu.launch(1e-5)
        made.append(torch.zeros(1))
        return made[-1]

    inputs = subjects.Inputs(workload.make(point()))
    timed = TimedCalls(call, inputs, timer, random.Random(1), reuses=False)
    assert timed.timing(call, 8, ended=lambda number, _result: held.append(number)).call_s == pytest.approx(1e-5)
    assert len(made) == 3
    assert len(held) == 1
    assert held[0] < 3
