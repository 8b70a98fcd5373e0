"""Convolutional self-attention by its contract."""

import numpy as np
import pytest
import torch
from torch import nn

from impls.layers.conv import ConvSelfAttention
from tests.impls.reference import Array, Weights, array, distance, normal, softmax, weights

ROUNDING = 1e-12
"""What float64 arithmetic may differ by from itself in another order."""


def layer_of(channels: int) -> ConvSelfAttention:
    """Return a layer whose residual counts."""
    layer = ConvSelfAttention(channels)
    nn.init.constant_(layer.gamma, 0.7)
    return layer


def formula(x: Array, w: Weights) -> Array:
    """Return the layer's output for maps x `[B, C, height, width]`."""
    pixels = np.moveaxis(x.reshape(*x.shape[:2], -1), 1, 2)  # [B, N, C]
    q, k, v = (pixels @ w[f"{name}.weight"][:, :, 0, 0].T + w[f"{name}.bias"] for name in "qkv")
    attention = softmax(np.einsum("bnd,bmd->bnm", q, k) / np.sqrt(x.shape[1] // 8))
    return np.asarray(w["gamma"] * np.moveaxis(attention @ v, 2, 1).reshape(x.shape) + x)


@pytest.mark.parametrize(("batch", "channels", "height", "width"), [(2, 64, 8, 8), (1, 8, 3, 5), (3, 21, 4, 2)])
def test_output_is_the_formula(batch: int, channels: int, height: int, width: int) -> None:
    """In float64 the output equals the written formula to rounding, on maps that aren't square too."""
    layer = layer_of(channels).double()
    x = normal(batch, channels, height, width, dtype=torch.float64)

    assert distance(layer(x), formula(array(x), weights(layer))) < ROUNDING


def test_the_notebooks_shapes() -> None:
    """A map comes out as it went in, keys are an eighth of its channels; gamma begins at 0, and x passes unchanged."""
    x = normal(1, 64, 8, 8)

    assert torch.equal(ConvSelfAttention(64)(x), x)
    projections = {"q": 8, "k": 8, "v": 64}
    expected = {"gamma": (1,), **{f"{name}.weight": (width, 64, 1, 1) for name, width in projections.items()}}
    expected |= {f"{name}.bias": (width,) for name, width in projections.items()}
    assert {name: tuple(value.shape) for name, value in layer_of(64).state_dict().items()} == expected


@pytest.mark.parametrize("channels", [1, 4, 7])
def test_too_few_channels_are_refused(channels: int) -> None:
    """Fewer than 8 channels leave no key channel: a ValueError that gives the number."""
    with pytest.raises(ValueError, match=f"at least 8.*got {channels}"):
        ConvSelfAttention(channels)
