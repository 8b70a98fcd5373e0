"""The layers by their contracts and formulas."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from impls.layers.conv import ConvSelfAttention
from impls.layers.patch import PatchAttention
from impls.layers.self_attention import SelfAttention
from impls.layers.vit import ViTAttention
from tests.impls.reference import (
    ROUNDING,
    Array,
    array,
    attend,
    distance,
    forward,
    merge,
    normal,
    split,
    weights,
)


def vit(layer: ViTAttention, x: Array) -> Array:
    """Return the vit layer's output for tokens x `[B, N, dim]`."""
    return forward(x, layer)


def self_attention(layer: SelfAttention, x: Array) -> Array:
    """Return the unscaled layer's output for tokens x `[B, N, dim]`."""
    q, k, v = (x @ weights(layer)[f"{name}.weight"].T for name in ("query", "key", "value"))
    return attend(q, k, v, 1.0)


def patch(layer: PatchAttention, x: Array) -> Array:
    """Return the layer's output for images x `[B, C, height, width]`, patch by patch."""
    w, side = weights(layer), layer.patch_size
    places = [(i, j) for i in range(0, x.shape[2], side) for j in range(0, x.shape[3], side)]
    patches = [x[:, :, i : i + side, j : j + side] for i, j in places]
    tokens = np.stack([np.einsum("bcij,ecij->be", each, w["proj.weight"]) for each in patches], axis=1)
    tokens = tokens + w["proj.bias"]
    q, k, v = (split(tokens @ w[f"to_{n}.weight"].T + w[f"to_{n}.bias"], layer.heads) for n in "qkv")
    return np.asarray(merge(attend(q, k, v, q.shape[-1] ** -0.5)) @ w["to_out.weight"].T + w["to_out.bias"])


def conv(layer: ConvSelfAttention, x: Array) -> Array:
    """Return the layer's output for maps x `[B, C, height, width]`."""
    w, pixels = weights(layer), np.moveaxis(x.reshape(*x.shape[:2], -1), 1, 2)  # [B, N, C]
    q, k, v = (pixels @ w[f"{name}.weight"][:, :, 0, 0].T + w[f"{name}.bias"] for name in "qkv")
    o = attend(q, k, v, (x.shape[1] // 8) ** -0.5)
    return np.asarray(w["gamma"] * np.moveaxis(o, 2, 1).reshape(x.shape) + x)


@pytest.mark.parametrize(
    ("formula", "layer", "x"),
    [
        *(
            (vit, ViTAttention(dim, chan, heads, qkv_bias), (batch, tokens, dim))
            for batch, tokens, dim, chan, heads in (
                (13, 100, 49, 64, 1),
                (13, 100, 49, 64, 4),
                (2, 10, 64, 48, 3),
                (1, 1, 5, 6, 6),
            )
            for qkv_bias in (False, True)
        ),
        (self_attention, SelfAttention(4, 3, 3), (1, 3, 4)),
        (self_attention, SelfAttention(10, 6, 14), (2, 11, 10)),
        (self_attention, SelfAttention(5, 8, 2), (3, 1, 5)),
        (patch, PatchAttention(), (1, 3, 32, 32)),
        (patch, PatchAttention(3, 4, 24, 3), (2, 3, 12, 8)),
        (patch, PatchAttention(1, 5, 6, 6), (3, 1, 5, 10)),
        (conv, ConvSelfAttention(64), (2, 64, 8, 8)),
        (conv, ConvSelfAttention(8), (1, 8, 3, 5)),
        (conv, ConvSelfAttention(21), (3, 21, 4, 2)),
    ],
)
def test_output_is_the_formula(formula: Callable[[Any, Array], Array], layer: nn.Module, x: tuple[int, ...]) -> None:
    """In float64 the output equals the written formulas to rounding, on images that aren't square too."""
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)  # conv's weight of the residual is 0 at first
    tokens = normal(*x, dtype=torch.float64)
    assert distance(layer.double()(tokens), formula(layer, array(tokens))) < ROUNDING


def test_the_notebooks_shapes() -> None:
    """An image of 32×32 in patches of 4×4 gives 64 tokens; a map passes unchanged, because gamma begins at 0."""
    assert PatchAttention()(normal(1, 3, 32, 32)).shape == (1, 64, 64)
    x = normal(1, 64, 8, 8)
    assert torch.equal(ConvSelfAttention(64)(x), x)


@pytest.mark.parametrize("qk_scale", [0.0, 1.0, -0.5, 3.0])
def test_a_given_scale_is_the_scale(qk_scale: float) -> None:
    """A given scale multiplies the scores unchanged; with 0.0 every token attends to all tokens equally.

    There the origin falls back to its default.
    """
    layer = ViTAttention(6, 8, 2, qk_scale=qk_scale).double()
    x, w = normal(2, 5, 6, dtype=torch.float64), weights(layer)

    assert distance(layer(x), forward(array(x), layer, qk_scale)) < ROUNDING
    v = array(x) @ w["qkv.weight"][16:].T
    uniform = v + v.mean(axis=1, keepdims=True) @ w["proj.weight"].T + w["proj.bias"]
    assert (distance(layer(x), uniform) < ROUNDING) is (qk_scale == 0.0)
