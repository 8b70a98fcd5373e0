"""Timed calls: what is held of them and kept. How they are judged is tested where a case is measured."""

import dataclasses

import pytest
import torch

from bench.measure import outputs, workload
from bench.measure.outputs import Incorrect
from bench.measure.timed_calls import TimedOutputs
from bench.sampling.inputs import TimedCall
from tests.make.points import point


@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
def test_a_timed_output_is_kept_whole_and_in_parts(mode: str) -> None:
    """The numbers are those of a checked call on the same input, with gradients if the mode has any."""
    work = workload.make(point(mode=mode))
    subject, inputs = workload.subject(work, "eager"), workload.Inputs(work)
    direction = work.timed.direction(2) if mode == "train" else work.direction
    checked = outputs.compute(
        subject, dataclasses.replace(work, direction=direction), work.timed.inputs(1, TimedCall(2, 0))
    )
    timed = TimedOutputs(subject, work, checked, timings=2, wholes=2, parts=3)
    work.timed.begin(1)
    inputs.renew(1, 2)
    with work.gradient_mode():
        timed.hold(1, inputs.of_call(0)[1], workload.step(subject, work, inputs)())
    timed.keep([(0, 1, 1), (1, 1, 0)], [(0, 1)])
    by_item = checked.tensors[: 2 if mode == "train" else 1]
    expected = [*checked.tensors, *(tensor[1] for tensor in by_item), *(tensor[0] for tensor in by_item)]
    assert len(timed.kept) == len(expected)
    for one, other in zip(timed.kept, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_what_is_held_is_a_copy_of_the_right_form() -> None:
    """Work that ends later changes nothing of it; another form is refused before it is copied."""
    work = workload.make(point())
    xs, y = work.inputs(), torch.ones_like(work.direction)
    timed = TimedOutputs(workload.subject(work, "eager"), work, outputs.Output(xs, y), timings=1, wholes=1, parts=1)
    timed.hold(0, xs, y)
    y.zero_()
    timed.keep([(0, 0, 0)], [(0, 0)])
    assert all(bool((tensor == 1).all()) for tensor in timed.kept)
    with pytest.raises(Incorrect, match=r"output has shape .* \(in a timed call\)"):
        timed.hold(0, xs, y[:1])
