"""The vit layer by its formulas, forwards and backwards, in float64 and without torch's help."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

Array = npt.NDArray[np.float64]
Weights = Mapping[str, Array]
"""The layer's weights by their names in its state dict; `qkv.bias` may be missing."""


@dataclass(frozen=True)
class Steps:
    """What the formulas name, in their order."""

    q: Array  # [B, H, N, D]
    k: Array  # [B, H, N, D]
    v: Array  # [B, H, N, D]
    attention: Array  # [B, H, N, N]
    o: Array  # [B, N, chan]
    y: Array  # [B, N, chan]


def array(tensor: Tensor) -> Array:
    """Return a tensor's values in float64."""
    return np.asarray(tensor.detach().double().numpy())


def weights(layer: nn.Module) -> dict[str, Array]:
    """Return a layer's weights in float64."""
    return {name: array(value) for name, value in layer.state_dict().items()}


def softmax(scores: Array) -> Array:
    """Return the softmax over the last axis."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def attend(q: Array, k: Array, v: Array, scale: float) -> Array:
    """Return `softmax((q·scale) kᵀ) v`."""
    return softmax(np.einsum("bhnd,bhmd->bhnm", q, k) * scale) @ v


def forward(x: Array, w: Weights, heads: int, scale: float | None = None) -> Steps:
    """Return every step of the layer for tokens x `[B, N, dim]`."""
    chan = len(w["proj.bias"])
    scale = (chan / heads) ** -0.5 if scale is None else scale
    q, k, v = (split(part, heads) for part in np.split(x @ w["qkv.weight"].T + w.get("qkv.bias", 0.0), 3, axis=-1))
    attention = softmax(np.einsum("bhnd,bhmd->bhnm", q, k) * scale)
    o = merge(attention @ v)
    y = merge(v) + o @ w["proj.weight"].T + w["proj.bias"]
    return Steps(q, k, v, attention, o, y)


def gradients(x: Array, w: Weights, heads: int, dy: Array) -> dict[str, Array]:
    """Return the gradients of `sum(y·dy)` with respect to x and every weight, derived by hand."""
    steps = forward(x, w, heads)
    scale = (len(w["proj.bias"]) / heads) ** -0.5
    do = split(dy @ w["proj.weight"], heads)
    dv = split(dy, heads) + np.einsum("bhnm,bhnd->bhmd", steps.attention, do)
    dattention = np.einsum("bhnd,bhmd->bhnm", do, steps.v)
    inner = (dattention * steps.attention).sum(axis=-1, keepdims=True)
    dscores = steps.attention * (dattention - inner) * scale
    dq = dscores @ steps.k
    dk = np.einsum("bhnm,bhnd->bhmd", dscores, steps.q)
    dqkv = np.concatenate([merge(dq), merge(dk), merge(dv)], axis=-1)
    result = {
        "x": dqkv @ w["qkv.weight"],
        "qkv.weight": np.einsum("bnc,bnd->cd", dqkv, x),
        "proj.weight": np.einsum("bnc,bnd->cd", dy, steps.o),
        "proj.bias": dy.sum(axis=(0, 1)),
    }
    return result | ({"qkv.bias": dqkv.sum(axis=(0, 1))} if "qkv.bias" in w else {})


def split(tokens: Array, heads: int) -> Array:
    """Return `[B, N, H·D]` as `[B, H, N, D]`, the heads side by side in the channels."""
    return np.stack(np.split(tokens, heads, axis=-1), axis=1)


def merge(by_head: Array) -> Array:
    """Return `[B, H, N, D]` as `[B, N, H·D]`."""
    return np.concatenate(list(np.moveaxis(by_head, 1, 0)), axis=-1)


def distance(got: Tensor, expected: Array) -> float:
    """Return the largest difference, in units of the expected values' root mean square."""
    assert tuple(got.shape) == expected.shape
    size = np.sqrt(np.mean(expected**2)) or 1.0
    return float(np.abs(array(got) - expected).max() / size)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return normal numbers that a test can feed to a layer."""
    return torch.randn(shape, dtype=torch.float64).to(dtype)
