"""Patch embedding and attention by their contract."""

import numpy as np
import pytest
import torch

from impls.layers.patch import PatchAttention
from tests.impls.reference import Array, Weights, array, distance, merge, normal, softmax, split, weights

ROUNDING = 1e-12
"""What float64 arithmetic may differ by from itself in another order."""


def formula(x: Array, w: Weights, patch: int, heads: int) -> Array:
    """Return the layer's output for images x `[B, C, height, width]`, patch by patch."""
    rows, columns = range(0, x.shape[2], patch), range(0, x.shape[3], patch)
    patches = [x[:, :, i : i + patch, j : j + patch] for i in rows for j in columns]
    tokens = np.stack([np.einsum("bcij,ecij->be", each, w["proj.weight"]) for each in patches], axis=1)
    tokens = tokens + w["proj.bias"]
    q, k, v = (split(tokens @ w[f"to_{n}.weight"].T + w[f"to_{n}.bias"], heads) for n in "qkv")
    attention = softmax(np.einsum("bhnd,bhmd->bhnm", q, k) / np.sqrt(q.shape[-1]))
    return np.asarray(merge(attention @ v) @ w["to_out.weight"].T + w["to_out.bias"])


@pytest.mark.parametrize(
    ("batch", "channels", "height", "width", "patch", "embedded", "heads"),
    [(1, 3, 32, 32, 4, 64, 1), (2, 3, 12, 8, 4, 24, 3), (3, 1, 5, 10, 5, 6, 6)],
)
def test_output_is_the_formula(
    batch: int, channels: int, height: int, width: int, patch: int, embedded: int, heads: int
) -> None:
    """In float64 the output equals the written formulas to rounding, on images that aren't square too."""
    layer = PatchAttention(channels, patch, embedded, heads).double()
    x = normal(batch, channels, height, width, dtype=torch.float64)

    assert distance(layer(x), formula(array(x), weights(layer), patch, heads)) < ROUNDING


def test_more_heads_are_another_function() -> None:
    """The number of heads changes the output, where the source never used it."""
    one, two = PatchAttention(heads=1), PatchAttention(heads=2)
    two.load_state_dict(one.state_dict())
    x = normal(1, 3, 32, 32)

    assert distance(two(x), array(one(x))) > 1e-3


def test_state_dict() -> None:
    """The parameters have the contract's names and shapes; an image of 32×32 in patches of 4×4 gives 64 tokens."""
    shapes = {name: tuple(value.shape) for name, value in PatchAttention(3, 4, 64).state_dict().items()}
    linear = {
        f"to_{n}.{kind}": shape
        for n in ("q", "k", "v", "out")
        for kind, shape in (("weight", (64, 64)), ("bias", (64,)))
    }

    assert shapes == {"proj.weight": (64, 3, 4, 4), "proj.bias": (64,), **linear}
    assert PatchAttention()(normal(1, 3, 32, 32)).shape == (1, 64, 64)


@pytest.mark.parametrize(("height", "width"), [(30, 32), (32, 30)])
def test_sides_that_the_patch_does_not_divide_are_refused(height: int, width: int) -> None:
    """An image that patches don't cover is a ValueError that gives the numbers."""
    with pytest.raises(ValueError, match=f"patch_size=4, got {height}×{width}"):
        PatchAttention()(normal(1, 3, height, width))


@pytest.mark.parametrize("heads", [5, 0, -1])
def test_indivisible_channels_are_refused(heads: int) -> None:
    """Channels that the heads can't share are a ValueError that gives both numbers."""
    with pytest.raises(ValueError, match=f"embed_dim=64, heads={heads}"):
        PatchAttention(heads=heads)
