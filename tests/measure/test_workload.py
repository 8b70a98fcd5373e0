"""The workload: the same weights and inputs for everyone, and the layers that a user brings."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import impls
from bench.measure import workload
from tests.make.points import point


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
    """Torch counts operations that a layer doesn't state, backward too; with a mask the number is unknown."""
    assert own(name, **columns).flops == flops


@pytest.mark.parametrize(
    ("name", "columns", "reason"),
    [
        ("Wide", {}, "Wide' fails when called with [2, 7, 12]: RuntimeError: mat1 and mat2 shapes cannot be "),
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
