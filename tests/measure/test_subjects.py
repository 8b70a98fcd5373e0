"""An implementation with weights and inputs of its own, and its calls in the point's mode."""

import dataclasses
import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from bench.measure import outputs, subjects, workload
from bench.sampling.inputs import TimedCall
from tests.make.points import WITH_CONTEXT, point


def test_implementations_cannot_disturb_each_other() -> None:
    """Each subject has its own copy of the weights: zeroing one leaves the other and the reference as they are."""
    work = workload.make(point())
    first, second = subjects.subject(work, "eager"), subjects.subject(work, "sdpa")
    with torch.no_grad():
        for weight in first.layer.parameters():
            weight.zero_()
    for weight, original in zip(second.layer.parameters(), work.layer.parameters(), strict=True):
        assert torch.equal(weight, original)
        assert weight.abs().max() > 0


@pytest.mark.parametrize("calls", [1, 2, 6])
def test_the_calls_of_a_timing_get_the_values_of_its_key(calls: int, on: str) -> None:
    """Each call has its own tensor and values, which the judge makes from the keys, independent of earlier calls."""
    work, judge = workload.make(point(device=on)), workload.make(point(device=on))
    inputs = subjects.Inputs(work)
    for key in (1, 2):
        inputs.renew(calls, key)
        given = [x for _ in range(calls) for x in inputs.next()]
        assert len({x.data_ptr() for x in given}) == len({float(x.sum()) for x in given}) == calls
        for call, x in enumerate(given):
            place, (held,) = inputs.of_call(call)
            assert held is x
            assert torch.equal(x, *judge.of_call(TimedCall(key, place)))
    assert not inputs.are_edited()
    given[0].mul_(2)
    assert inputs.are_edited()


@pytest.mark.parametrize("columns", [WITH_CONTEXT, {"layer": "core"}, {"layer": "core", "lengths": "uniform"}])
def test_an_edit_of_any_input_is_seen(columns: dict[str, Any]) -> None:
    """It holds for x or queries, a context or keys and values, and the padding mask, which is not remade."""
    work = workload.make(point(**columns))
    for number in range(len(work.inputs())):
        inputs = subjects.Inputs(work)
        inputs.renew(2, 1)
        assert not inputs.are_edited()
        edited = inputs.next()[number]
        edited.copy_(~edited if edited.dtype == torch.bool else -edited)
        assert inputs.are_edited()


@pytest.mark.parametrize("columns", [{}, WITH_CONTEXT])
def test_a_backward_pass_gives_the_gradients_of_training_without_a_forward_pass(columns: dict[str, Any]) -> None:
    """The forward passes of the calls to come are made when they are prepared, on the inputs of these calls."""
    work = workload.make(point(mode="backward", **columns))
    subject, inputs, forward = subjects.subject(work, "eager"), subjects.Inputs(work), list[tuple[Tensor, ...]]()

    def function(*xs: Tensor) -> Tensor:
        forward.append(xs)
        y: Tensor = subject.function(*xs)
        return y

    call: Any = subjects.step(subjects.Subject(subject.layer, function), work, inputs)
    trained = workload.make(point(mode="train", **columns))
    inputs.renew(2, 1)
    with work.gradient_mode():
        call.prepare(2)
        assert forward == [inputs.of_call(number)[1] for number in (0, 1)]
        got = [call() for _ in range(2)]
        assert len(forward) == 2
    for number, (y, gradients) in enumerate(got):
        xs = work.of_call(TimedCall(1, number))
        timed = dataclasses.replace(trained, direction=work.direction_of(1))
        expected = outputs.compute(subjects.subject(timed, "eager"), timed, xs)
        torch.testing.assert_close([y, *gradients], [*expected.tensors])


def test_no_forward_pass_can_know_the_gradient_of_its_output() -> None:
    """Each timing has another one, with the same numbers in another order."""
    work = workload.make(point(mode="backward"))
    inputs, seen = subjects.Inputs(work), [work.direction]
    for key in (1, 2):
        inputs.renew(1, key)
        seen.append(inputs.direction)
    assert all(torch.equal(each.flatten().sort().values, seen[0].flatten().sort().values) for each in seen)
    assert not any(torch.equal(one, other) for one, other in itertools.combinations(seen, 2))
