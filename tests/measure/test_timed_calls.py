"""Timed calls: what is held of them and kept. How they are judged is tested where a case is measured."""

import dataclasses
import random
from collections import Counter
from collections.abc import Callable

import pytest
import torch

from bench.measure import clock, cuda, outputs, workload
from bench.measure.elements import Elements
from bench.measure.outputs import Incorrect
from bench.measure.timed_calls import TimedCalls, TimedOutputs
from bench.plan.device import COLD, HOT
from bench.sampling.inputs import TimedCall
from tests.make.points import point
from tests.make.simulated_gpu import Gpu, gpu

__all__ = ["gpu"]


@pytest.mark.parametrize("frozen", [None, 0, 1])
@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
def test_a_timed_output_is_kept_whole_and_in_parts(mode: str, frozen: int | None) -> None:
    """The numbers are those of a checked call on the same input, with gradients if the mode has any.

    That of a weight that is frozen is zero.
    """
    work = workload.make(point(mode=mode))
    if frozen is not None:
        [*work.layer.parameters()][frozen].requires_grad_(False)
    subject, inputs = workload.subject(work, "eager"), workload.Inputs(work)
    direction = work.direction_of(2) if mode == "train" else work.direction
    checked = outputs.compute(subject, dataclasses.replace(work, direction=direction), work.of_call(TimedCall(2, 0)))
    timed = TimedOutputs(subject, work, checked, timings=2, wholes=2, parts=3)
    inputs.renew(1, 2)
    with work.gradient_mode():
        timed.hold(1, inputs.of_call(0)[1], workload.step(subject, work, inputs)(), inputs.direction)
    timed.keep([(0, 1, 1), (1, 1, 0)], [(0, 1)])
    by_item = checked.tensors[: 2 if mode == "train" else 1]
    expected = [*checked.tensors, *(tensor[1] for tensor in by_item), *(tensor[0] for tensor in by_item)]
    kept = timed.kept(Elements([None] * len(checked.tensors), [None] * len(by_item)))
    assert len(kept) == len(expected)
    for one, other in zip(kept, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    if mode != "inference":
        of_weights = [bool(tensor.any()) for tensor in kept[2 : len(checked.tensors)]]
        assert of_weights == [place != frozen for place in range(len(of_weights))]


def test_what_is_held_is_a_copy_of_the_right_form() -> None:
    """Work that ends later changes nothing of it; another form is refused before it is copied.

    What isn't finite is refused before it is handed over, also where it is not compared.
    """
    work = workload.make(point())
    xs, y = work.inputs(), torch.ones_like(work.direction)
    timed = TimedOutputs(workload.subject(work, "eager"), work, outputs.Output(xs, y), timings=1, wholes=1, parts=1)
    timed.hold(0, xs, y, work.direction)
    y.zero_()
    timed.keep([(0, 0, 0)], [(0, 0)])
    assert all(bool((tensor == 1).all()) for tensor in timed.kept(Elements([None], [None])))
    with pytest.raises(Incorrect, match=r"output has shape .* \(in a timed call\)"):
        timed.hold(0, xs, y[:1], work.direction)
    y[0, -1] = torch.nan
    timed.hold(0, xs, y, work.direction)
    timed.keep([(0, 0, 0)], [])
    with pytest.raises(Incorrect, match=r"output is not finite \(in a timed call\)"):
        timed.kept(Elements([None], [torch.tensor([0])]))


def timed_calls(call: Callable[[torch.Tensor], object], *, reuses: bool) -> tuple[TimedCalls, Callable[[], object]]:
    """Return timed calls of what gets the next input, and the call."""
    inputs = workload.Inputs(workload.make(point()))

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
        timed.timing(of_next, CALLS, hold=lambda number, y: kept.append((number, float(y))))  # type: ignore[arg-type]
        assert len(made) == CALLS
        assert all(number == value for number, value in kept)
        held[kept[-1][0]] += 1
    expected = [0.0] * 4 + [1.0] if reuses else [0.2] * 5
    assert [held[number] / 1000 for number in range(CALLS)] == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("reuses", [False, True])
def test_inputs_on_a_gpu_are_there_only_behind_a_hold(reuses: bool, gpu: Gpu) -> None:
    """Work on another stream that doesn't wait finds zeros, in each part of a timing."""
    work, other = workload.make(point()), gpu.stream()
    inputs = workload.Inputs(work)
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

    inputs = workload.Inputs(workload.make(point()))
    timed = TimedCalls(call, inputs, timer, random.Random(1), reuses=False)
    assert timed.timing(call, 8, hold=lambda number, _result: held.append(number)).call_s == pytest.approx(1e-5)
    assert len(made) == 3
    assert len(held) == 1
    assert held[0] < 3
