"""The vit layer by its contract."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from impls.layers.vit import ViTAttention
from tests.impls.reference import array, distance, forward, normal, weights
from tests.impls.watch import Watch

ROUNDING = 1e-12
"""What float64 arithmetic may differ by from itself in another order."""


@pytest.mark.parametrize(
    ("heads", "each_of_qkv", "attention"),
    [
        (1, (13, 1, 100, 64), (13, 1, 100, 100)),
        (4, (13, 4, 100, 16), (13, 4, 100, 100)),
    ],
)
def test_worked_shapes(heads: int, each_of_qkv: tuple[int, ...], attention: tuple[int, ...]) -> None:
    """The article's 13 images of 100 tokens of 49 pixels give q, k, v, A and y of its shapes."""
    layer = ViTAttention(49, 64, heads)
    core = layer.attend
    seen: list[tuple[int, ...]] = []

    def spy(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        seen.extend(tuple(tensor.shape) for tensor in (q, k, v))
        return core(q, k, v, scale)

    layer.attend = spy
    with torch.no_grad(), Watch() as watch:
        y = layer(normal(13, 100, 49))

    assert seen == [each_of_qkv] * 3
    assert watch.shapes("_softmax") == [attention]
    assert y.shape == (13, 100, 64)


@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize(
    ("batch", "tokens", "dim", "chan", "heads"),
    [
        (13, 100, 49, 64, 1),
        (13, 100, 49, 64, 4),
        (2, 10, 64, 48, 3),
        (1, 1, 5, 6, 6),
        (3, 2, 8, 8, 2),
    ],
)
def test_output_is_the_formula(batch: int, tokens: int, dim: int, chan: int, heads: int, qkv_bias: bool) -> None:
    """In float64 the output equals the written formulas to rounding."""
    layer = ViTAttention(dim, chan, heads, qkv_bias).double()
    x = normal(batch, tokens, dim, dtype=torch.float64)

    expected = forward(array(x), weights(layer), heads).y

    assert distance(layer(x), expected) < ROUNDING


@pytest.mark.parametrize("qk_scale", [0.0, 1.0, -0.5, 3.0])
def test_a_given_scale_is_the_scale(qk_scale: float) -> None:
    """A scale that is given multiplies the scores as it is, 0.0 included."""
    layer = ViTAttention(6, 8, 2, qk_scale=qk_scale).double()
    x = normal(2, 5, 6, dtype=torch.float64)

    assert distance(layer(x), forward(array(x), weights(layer), 2, scale=qk_scale).y) < ROUNDING


def test_a_scale_of_zero_averages_the_values() -> None:
    """With qk_scale=0.0 every token attends to all tokens alike, where the origin falls back to its default."""
    layer = ViTAttention(6, 8, 2, qk_scale=0.0).double()
    x = normal(2, 5, 6, dtype=torch.float64)
    w = weights(layer)

    v = array(x) @ w["qkv.weight"][16:].T
    uniform = v + v.mean(axis=1, keepdims=True) @ w["proj.weight"].T + w["proj.bias"]

    assert distance(layer(x), uniform) < ROUNDING


@pytest.mark.parametrize("heads", [1, 4])
def test_the_skip_adds_the_values(heads: int) -> None:
    """With the output projection silenced the layer returns v, its heads merged, and not x."""
    layer = ViTAttention(12, 8, heads).double()
    nn.init.zeros_(layer.proj.weight)
    nn.init.zeros_(layer.proj.bias)
    x = normal(2, 5, 12, dtype=torch.float64)

    v = array(x) @ weights(layer)["qkv.weight"][16:].T

    assert distance(layer(x), v) < ROUNDING


@pytest.mark.parametrize("qkv_bias", [False, True])
def test_state_dict(qkv_bias: bool) -> None:
    """The parameters have the origin's names and shapes, and there are no others."""
    shapes = {name: tuple(value.shape) for name, value in ViTAttention(49, 64, 4, qkv_bias).state_dict().items()}

    bias = {"qkv.bias": (192,)} if qkv_bias else {}
    assert shapes == {"qkv.weight": (192, 49), **bias, "proj.weight": (64, 64), "proj.bias": (64,)}


@pytest.mark.parametrize(("chan", "heads"), [(100, 3), (64, 5), (4, 8), (64, 0), (64, -1)])
def test_indivisible_channels_are_refused(chan: int, heads: int) -> None:
    """Channels that the heads can't share are a ValueError that gives both numbers."""
    with pytest.raises(ValueError, match=rf"divisible.*chan={chan}.*num_heads={heads}\b"):
        ViTAttention(49, chan, heads)


def test_heads_look_at_their_own_channels() -> None:
    """Each head attends by its own queries and keys: silencing one head's keys leaves the others' output alone."""
    layer = ViTAttention(6, 8, 2).double()
    nn.init.eye_(layer.proj.weight)
    x = normal(1, 7, 6, dtype=torch.float64)
    before = array(layer(x))

    with torch.no_grad():
        layer.qkv.weight[8 : 8 + 4] = 0.0  # the keys of head 0
    after = array(layer(x))

    assert np.abs(after - before)[..., :4].max() > 1e-3
    assert np.abs(after - before)[..., 4:].max() < ROUNDING
