"""The workload: the same weights and inputs for everyone, and the layers that a user brings."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import impls
from bench.measure import subjects, workload
from bench.sampling.inputs import TimedCall
from tests.make.points import point
from tests.measure.stub import path


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


def test_a_padding_mask_belongs_to_its_items() -> None:
    """It hides what an item has not; an item is taken with its own part of it."""
    work = workload.make(point(layer="attention", lengths="list:16+14+12+10+8", batch=5, num_tokens=16))
    x, padding = work.inputs()
    hidden = padding.sum(1)
    assert sorted(hidden.tolist()) == [0, 2, 4, 6, 8]
    assert torch.equal(padding, torch.arange(16) >= 16 - hidden[:, None])
    assert torch.equal(subjects.Inputs(work).next()[1], padding)
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
        ("OfTwenty", {}, "OfTwenty[input=mymodule:inputs], where inputs() returns"),
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


def test_what_a_users_layer_refuses_is_unsupported() -> None:
    """The reason is the layer's own, with its name before it."""
    assert own("Even", num_tokens=8).flops == own("Whole", num_tokens=8).flops
    with pytest.raises(impls.Unsupported, match=r"^layer 'tests.own_layers:Even': needs an even number of tokens$"):
        own("Even")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"mask": "causal"}, "mask = causal"),
        ({"qkv_bias": True, "qk_scale": 0.5}, "qkv_bias = True and qk_scale = 0.5"),
    ],
)
def test_what_a_users_layer_does_not_take_is_unsupported(columns: dict[str, Any], said: str) -> None:
    """A layer is never measured under the name of another function."""
    with pytest.raises(impls.Unsupported, match=f"does not take {said}, which the point asks for"):
        own("Whole", **columns)


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


class Viewing(nn.Module):
    """Calls a module with a view of a weight that has no gradient, at which torch's counter of operations fails."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(1, 1, dim))
        self.linear = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `[B, N, dim]`."""
        with torch.no_grad():
            start = self.start.expand(len(x), -1, -1)
        y: torch.Tensor = x + self.linear(start)
        return y


def test_a_call_that_torch_can_not_count_with_gradients_is_counted_without() -> None:
    """In training it has no count."""
    at = point(layer="tests.measure.test_workload:Viewing")
    assert workload.make(at).flops == 2 * at.batch * at.token_len**2
    assert workload.make(point(layer=at.layer, mode="train")).flops is None
