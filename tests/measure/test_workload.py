"""The workload: the same weights and inputs for everyone, and calls in the point's mode."""

import dataclasses
import itertools
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import impls
from bench.measure import devices, outputs, workload
from bench.sampling.inputs import TimedCall
from tests.make.points import WITH_CONTEXT, of_layer, point
from tests.measure.stub import path


@pytest.fixture(params=["cpu", "cuda"])
def on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a device; a GPU's tensors are the CPU's, and it draws them as a GPU does."""
    monkeypatch.setattr(devices.Gpu, "place", "cpu")
    return str(request.param)


def test_the_values_follow_from_the_seed_and_the_shape_alone(on: str) -> None:
    """Whatever was drawn in between, two workloads of a point are equal; the user's own random numbers stay."""
    torch.manual_seed(3)
    expected = torch.randn(17)
    torch.manual_seed(3)
    first = workload.make(point(device=on))
    assert torch.equal(torch.randn(17), expected)
    second = workload.make(point(device=on))
    for one, other in zip(
        (*first.inputs(), first.direction, *first.layer.parameters()),
        (*second.inputs(), second.direction, *second.layer.parameters()),
        strict=True,
    ):
        assert torch.equal(one, other)
    another = workload.make(point(device=on), seed=first.seed + 1)
    assert not torch.equal(another.values, first.values)
    assert not torch.equal(another.direction, first.direction)


def test_implementations_cannot_disturb_each_other() -> None:
    """Each subject has its own copy of the weights: zeroing one leaves the other and the reference as they are."""
    work = workload.make(point())
    first, second = workload.subject(work, "eager"), workload.subject(work, "sdpa")
    with torch.no_grad():
        for weight in first.layer.parameters():
            weight.zero_()
    for weight, original in zip(second.layer.parameters(), work.layer.parameters(), strict=True):
        assert torch.equal(weight, original)
        assert weight.abs().max() > 0


@pytest.mark.parametrize("calls", [1, 2, 6])
def test_the_calls_of_a_timing_get_the_values_of_its_key(calls: int, on: str) -> None:
    """Each call has a tensor and values of its own, which the judge makes from the keys whatever came before."""
    work, judge = workload.make(point(device=on)), workload.make(point(device=on))
    inputs = workload.Inputs(work)
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


@pytest.mark.parametrize("columns", [WITH_CONTEXT, {"layer": "core"}, {"layer": "core", "mask": "padding"}])
def test_an_edit_of_any_input_is_seen(columns: dict[str, Any]) -> None:
    """Of x or queries, of a context or keys and values, and of the padding mask, which is not made anew."""
    work = workload.make(point(**columns))
    for number in range(len(work.inputs())):
        inputs = workload.Inputs(work)
        inputs.renew(2, 1)
        assert not inputs.are_edited()
        edited = inputs.next()[number]
        edited.copy_(~edited if edited.dtype == torch.bool else -edited)
        assert inputs.are_edited()


def test_a_training_step_gives_the_gradients_of_x_and_of_every_weight_each_time() -> None:
    """In mode train each call computes all gradients from a fresh graph, and adds none up."""
    work = workload.make(point(mode="train"))
    subject = workload.subject(work, "eager")
    call = workload.step(subject, work)
    with work.gradient_mode():
        steps: list[Any] = [call(), call()]
    (output, first), (_, second) = steps
    assert output.shape == work.direction.shape
    assert [gradient.shape for gradient in first] == [*work.shapes, *(p.shape for p in subject.layer.parameters())]
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
        assert one.abs().max() > 0
    assert all(weight.grad is None for weight in subject.layer.parameters())


@pytest.mark.parametrize("columns", [{}, WITH_CONTEXT])
def test_a_backward_pass_gives_the_gradients_of_training_without_a_forward_pass(columns: dict[str, Any]) -> None:
    """The forward passes of the calls to come are made when they are prepared, on the inputs of these calls."""
    work = workload.make(point(mode="backward", **columns))
    subject, inputs, forward = workload.subject(work, "eager"), workload.Inputs(work), list[tuple[Tensor, ...]]()

    def function(*xs: Tensor) -> Tensor:
        forward.append(xs)
        y: Tensor = subject.function(*xs)
        return y

    call: Any = workload.step(workload.Subject(subject.layer, function), work, inputs)
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
        expected = outputs.compute(workload.subject(timed, "eager"), timed, xs)
        torch.testing.assert_close([y, *gradients], [*expected.tensors])


def test_no_forward_pass_can_know_the_gradient_of_its_output() -> None:
    """Each timing has another one, with the same numbers in another order."""
    work = workload.make(point(mode="backward"))
    inputs, seen = workload.Inputs(work), [work.direction]
    for key in (1, 2):
        inputs.renew(1, key)
        seen.append(inputs.direction)
    assert all(torch.equal(each.flatten().sort().values, seen[0].flatten().sort().values) for each in seen)
    assert not any(torch.equal(one, other) for one, other in itertools.combinations(seen, 2))


def test_the_items_of_a_padding_mask_change_their_order_from_call_to_call() -> None:
    """A kernel can't use what it made of an earlier mask; the judge makes the same ones."""
    work = workload.make(of_layer("core", mask="padding", batch=6))
    inputs = workload.Inputs(work)
    inputs.renew(8, 1)
    masks = [inputs.of_call(call)[1][-1] for call in range(8)]
    assert {tuple(sorted(each.sum(1).tolist())) for each in masks} == {tuple(sorted(work.fixed[0].sum(1).tolist()))}
    assert len({tuple(each.sum(1).tolist()) for each in masks}) > 4
    assert all(torch.equal(work.of_call(TimedCall(1, call))[-1], masks[call]) for call in range(8))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_layer_can_have_the_weights_and_values_of_another(dtype: str, on: str) -> None:
    """Each weight and buffer is that of its name there, also rounded; its own seed changes nothing."""
    first, file = own("Separate", dtype=dtype, mode="train", device=on), path()
    workload.save(first, file)
    saved = workload.weights(first.layer)
    at = point(layer="tests.own_layers:Skewed", dtype=dtype, mode="train", device=on)
    second = workload.make(at, seed=1, given=file)
    assert all(torch.equal(each, saved[name]) for name, each in workload.weights(second.layer).items())
    for one, other in (
        (first.values, second.values),
        (first.direction, second.direction),
        (first.inputs()[0], second.inputs()[0]),
        (first.of_call(TimedCall(1, 0))[0], second.of_call(TimedCall(1, 0))[0]),
    ):
        assert torch.equal(one, other)


def own(name: str, **columns: Any) -> workload.Workload:
    """Return the workload of a tiny point of a user's layer: B=2, N=7, 12 channels, 3 heads."""
    return workload.make(point(layer=f"tests.own_layers:{name}", **columns))


PROJECTION = 2 * 2 * 7 * 12 * 36
"""Operations of the projection from 12 to 3 · 12: two for each of B·N·12·36 multiplications."""

CORE = 2 * 2 * (2 * 7 * 7 * 12)
"""Operations of both products of the core: two for each of B·N²·12 multiplications."""


@pytest.mark.parametrize(
    ("name", "columns", "flops"),
    [
        ("Mine", {}, PROJECTION + CORE),
        ("Mine", {"mode": "train"}, 3 * (PROJECTION + CORE)),
        ("OfValues", {}, PROJECTION + CORE),
        ("Mine", {"mask": "causal"}, None),
        ("Stating", {}, 2000),
        ("Pair", {}, PROJECTION + CORE),
    ],
)
def test_the_operations_of_a_users_layer_are_stated_or_counted(
    name: str, columns: dict[str, Any], flops: int | None
) -> None:
    """Torch counts what a layer doesn't state, backward too; with a mask nobody knows what a call needs."""
    assert own(name, **columns).flops == flops


def test_a_layer_that_needs_values_is_traced_on_the_cpu(on: str) -> None:
    """In float32, as it was made: the values of the inputs are elsewhere, in the point's dtype."""
    work = own("OfValues", device=on, dtype="bfloat16")
    assert (work.flops, work.values.dtype) == (PROJECTION + CORE, torch.bfloat16)


def test_a_padding_mask_belongs_to_its_items_and_hides_a_quarter() -> None:
    """No two items have as many keys, one has all and one half of them; an item is taken with its own part of it."""
    work = workload.make(point(layer="attention", mask="padding", batch=5, num_tokens=16))
    x, padding = work.inputs()
    hidden = padding.sum(1)
    assert sorted(hidden.tolist()) == [0, 2, 4, 6, 8]
    assert torch.equal(padding, torch.arange(16) >= 16 - hidden[:, None])
    assert torch.equal(workload.Inputs(work).next()[1], padding)
    assert torch.equal(workload.make(work.point, seed=work.seed).inputs()[1], padding)
    double, mask = work.items(3, torch.float64)
    assert (double.dtype, mask.dtype, len(double), len(mask)) == (torch.float64, torch.bool, 3, 3)
    assert x.shape == (5, 16, 12)


def test_a_layer_that_has_no_gradients_is_called_without_them() -> None:
    """In inference it works, and its operations are counted; a training step says torch's reason."""
    assert own("ChangesAView").flops == own("Whole").flops
    with pytest.raises(impls.Unresolved, match=r"ChangesAView' was called with .* is being modified inplace"):
        own("ChangesAView", mode="train")


@pytest.mark.parametrize(
    ("name", "columns", "reason"),
    [
        ("Wide", {}, "Wide' was called with [2, 7, 12]: RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
        ("OfTwenty", {}, "write its shape as [input=2x…], or all arguments as [input=mymodule:function]"),
        ("Turned", {}, "must return a tensor whose first dimension is the batch 2, got [7, 2, 12]"),
        ("Misstating", {}, "input_shape(point) must return whole numbers that begin with the batch 2, got (7, 12)"),
        ("Forgetful", {"mask": "causal"}, "must keep its mask as self.mask = 'causal', got 'none'"),
        ("Nothing", {}, "can't be imported"),
    ],
)
def test_a_users_layer_that_breaks_the_contract_is_refused(name: str, columns: dict[str, Any], reason: str) -> None:
    """The refusal names the layer and the rule."""
    with pytest.raises(impls.Unresolved) as refusal:
        own(name, **columns)
    assert f"layer 'tests.own_layers:{name}'" in str(refusal.value)
    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"mask": "causal"}, "mask = causal"),
        ({"qkv_bias": True, "qk_scale": 0.5}, "qkv_bias = True and qk_scale = 0.5"),
        ({"mask": "padding"}, "mask = padding"),
    ],
)
def test_what_a_users_layer_does_not_take_is_unsupported(columns: dict[str, Any], said: str) -> None:
    """A layer is never measured under the name of another function."""
    with pytest.raises(impls.Unsupported, match=f"does not take {said}, which the point asks for"):
        own("Whole", **columns)


def test_a_mask_of_a_users_layer_is_no_padding() -> None:
    """Its value is causal: a layer that was written for it never gets another one in silence."""
    with pytest.raises(impls.Unsupported, match="mask = padding is no value of the keyword mask, which is causal"):
        own("Mine", mask="padding")
    with pytest.raises(impls.Unresolved, match=r"was called with \[2, 7, 12\], \[2, 7\]"):
        own("Keeping", mask="padding")


class Drawn(nn.Module):
    """A layer that draws from the generators of Python, NumPy and torch when it is made."""

    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        self.drawn = random.random(), float(np.random.rand()), float(torch.rand(()))
        self.linear = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens for tokens."""
        y: Tensor = self.linear(x)
        return y


def test_a_layer_is_the_same_in_each_process() -> None:
    """Whatever generator it draws from; what others draw is left as it was."""
    at = point(layer="tests.measure.test_workload:Drawn")
    random.seed(1)
    before = random.getstate()
    layers = [getattr(workload.make(at, seed).layer, "inner", None) for seed in (1, 1, 2)]
    assert random.getstate() == before
    one, same, other = (each.drawn for each in layers if isinstance(each, Drawn))
    assert one == same
    assert not {*one} & {*other}
