"""Outputs: refusals without a look at numbers, and the way to the judge and back."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from bench.measure import outputs, subjects, workload
from bench.measure.outputs import Incorrect
from impls import with_attend
from impls.attend import eager
from tests.make.points import point


class _Other(Tensor):
    """A tensor of another type."""


def _edited(x: Tensor) -> Tensor:
    y = x.clone()
    x[0, 0, 0] += 1
    return y


FORMS: dict[str, Callable[[Tensor], object]] = {
    "output is a _Other, expected a plain torch.Tensor": lambda x: x.clone().as_subclass(_Other),
    "output is a Parameter, expected a plain torch.Tensor": lambda x: torch.nn.Parameter(x.clone(), False),
    "output is a tuple, expected a plain torch.Tensor": lambda x: (x.clone(),),
    "edited its input in place": _edited,
    "output has shape [2, 7, 11], expected [2, 7, 12]": lambda x: x[..., 1:].clone(),
    "output is torch.float64, expected torch.float32": Tensor.double,
    "output is on meta, expected cpu": lambda x: x.to("meta"),
    "output shares memory with its input or with a weight": lambda x: x.view_as(x),
}
"""Outputs of a wrong form for an input [2, 7, 12], by message."""


@pytest.mark.parametrize("reason", FORMS)
def test_an_output_of_a_wrong_form_is_refused_with_the_reason(reason: str) -> None:
    """Type, input, shape, dtype, device and memory are looked at; numbers are not."""
    work = workload.make(point())
    subject = subjects.subject(work, "eager")
    (x,) = work.inputs()
    y: Any = FORMS[reason](own := x.clone())
    with pytest.raises(Incorrect) as refusal:
        outputs.check_form(subject, work, (x,), outputs.Output((own,), y))
    assert str(refusal.value) == reason
    outputs.check_form(subject, work, (x,), outputs.Output((x.clone(),), torch.zeros(2, 7, 12)))


CORES: dict[str, Callable[[Tensor], object]] = {
    "attend must return [2, 3, 7, 4], got [2, 7, 3, 4]; it has tokens before heads, so return o.transpose(1, 2)": (
        lambda o: o.transpose(1, 2)
    ),
    "attend must return [2, 3, 7, 4], got [2, 7, 12]": lambda o: o.transpose(1, 2).flatten(2),
    "attend must return a tensor [2, 3, 7, 4], got None": lambda _: None,
    "attend must return a tensor [2, 3, 7, 4], got tuple": lambda o: (o, None),
    "": lambda o: o,
}
"""Wrong changes of a core's result, by message."""


@pytest.mark.parametrize("mistake", CORES)
def test_a_core_that_returns_another_form_is_named_with_both(mistake: str) -> None:
    """The order of other libraries gets the way out. The implementation itself is not changed by the look."""
    work = workload.make(point())

    def attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> object:
        return CORES[mistake](eager.attend(q, k, v, scale))

    function = with_attend(attend)(work.layer)  # type: ignore[arg-type]
    subject = subjects.Subject(work.layer, function)
    assert outputs.mistake_of_core(subject, work) == mistake
    assert vars(function)["attend"] is attend
    assert outputs.mistake_of_core(subjects.Subject(work.layer, lambda x: x), work) == ""


def test_gradients_are_those_of_x_and_of_every_weight() -> None:
    """For y = (w x) the gradient of x is w times the direction; a weight that isn't used has zeros.

    In inference the output is an inference tensor and has none.
    """
    layer = torch.nn.Linear(3, 3, bias=False)
    layer.register_parameter("unused", torch.nn.Parameter(torch.ones(5)))
    direction = torch.randn(2, 3)
    subject = subjects.Subject(layer, lambda x: torch.nn.functional.linear(x, layer.weight))
    trained = dataclasses.replace(workload.make(point(mode="train")), direction=direction)
    output = outputs.compute(subject, trained, (x := torch.randn(2, 3),))
    names = ["x", *(name for name, _ in layer.named_parameters())]
    gradients = dict(zip(names, output.gradients, strict=True))
    assert not output.y.requires_grad
    assert torch.allclose(gradients["x"], direction @ layer.weight.detach())
    assert torch.allclose(gradients["weight"], direction.T @ x.detach())
    assert torch.equal(gradients["unused"], torch.zeros(5))
    without = outputs.compute(subject, workload.make(point()), (x,))
    assert without.y.is_inference()
    assert without.gradients == ()


def test_what_is_written_is_read_to_the_bit(tmp_path: Path) -> None:
    """In any dtype and layout, with a graph or from inference mode."""
    with torch.inference_mode():
        inferred = torch.ones(3)
    tensors = [torch.randn(4, 5).T, torch.randn(3).half(), torch.empty(0), torch.tensor([float("nan"), -0.0]), inferred]
    tensors.append(torch.ones(2, requires_grad=True) * 2)
    outputs.write(tensors, file := str(tmp_path / "file"))
    for one, other in zip(outputs.read(file, tensors), tensors, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
        assert not one.requires_grad
        assert not one.is_inference()


def test_a_file_that_can_not_be_written_is_no_fault_of_the_case(tmp_path: Path) -> None:
    """Nothing of it counts as handed over."""
    with pytest.raises(outputs.NotHandedOver, match="could not be handed over"):
        outputs.write([torch.ones(3)], str(tmp_path / "no" / "file"))
