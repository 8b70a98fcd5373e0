"""The layer `attention` by its formulas, and beside modules of others with the same weights."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bench.modules.sources import library
from impls.contract import Unresolved
from impls.layers.attention import Attention, windows
from tests.impls import oracle
from tests.impls.reference import ROUNDING, Array, array, distance, normal, weights

BATCH, DIM, CHAN, HEADS = 2, 12, 16, 4

FEATURES: dict[str, dict[str, Any]] = {
    "qkv bias": {"qkv_bias": True},
    "context": {"num_kv_tokens": 5, "context_dim": 7},
    "context of as many tokens": {"num_kv_tokens": 10, "context_dim": DIM},
    "groups": {"num_kv_heads": 2},
    "one group": {"num_kv_heads": 1},
    "rms": {"qk_norm": "rms"},
    "layer norm": {"qk_norm": "layer"},
    "rope": {"rope": "axial"},
    "relative": {"attn_bias": "relative"},
    "alibi": {"attn_bias": "alibi"},
    "causal": {"mask": "causal"},
    "padding": {"lengths": "uniform"},
    "window": {"window_size": 2},
}

EXCLUSIVE = [
    *({"num_kv_tokens", name} for name in ("rope", "attn_bias", "window_size")),
    *({"lengths", name} for name in ("num_kv_tokens", "rope", "window_size")),
    {"mask", "window_size"},
]
"""Columns that exclude each other."""


def can_be_both(one: str, other: str) -> bool:
    """Return whether a layer can have two features."""
    columns = [*FEATURES[one], *FEATURES[other]]
    return len({*columns}) == len(columns) and not any(each <= {*columns} for each in EXCLUSIVE)


PAIRS = [pair for pair in itertools.combinations(FEATURES, 2) if can_be_both(*pair)]

IN_FLOAT32 = 1e-6
"""The tolerance for the angles of rotary embeddings and the slopes of ALiBi, which a layer computes in float32."""


class Columns:
    """The columns of a layer, its tokens among them: a square for windows, else a square and one before it."""

    num_kv_tokens = num_kv_heads = context_dim = window_size = None
    qkv_bias, qk_norm, rope, attn_bias, mask, lengths = False, "none", "none", "none", "none", "fixed"
    channels, num_heads = CHAN, HEADS

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)
        self.num_tokens = 10 if self.window_size is None else 16


def randomised(layer: Any) -> Any:
    """Return a layer in float64 whose parameters are all large enough to matter."""
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer.double().eval()


def tokens(*shape: int) -> Tensor:
    """Return tokens in float64."""
    return normal(*shape, dtype=torch.float64)


def made(at: Columns, given: dict[str, Any]) -> tuple[Any, list[Tensor], Tensor | None]:
    """Return a layer, its inputs, and the padding that it has."""
    layer = randomised(Attention(DIM, CHAN, HEADS, num_tokens=at.num_tokens, **given))
    xs = [tokens(BATCH, at.num_tokens, DIM)]
    if at.num_kv_tokens:
        xs.append(tokens(BATCH, at.num_kv_tokens, at.context_dim))
    padding = None
    if at.lengths != "fixed":
        padding = torch.arange(at.num_tokens) >= torch.tensor([[3], [9]])
    return layer, xs, padding


@pytest.mark.parametrize("features", [(), *((name,) for name in FEATURES), *PAIRS], ids=" and ".join)
def test_outputs_and_gradients_are_those_of_the_formulas(features: tuple[str, ...]) -> None:
    """With each feature and each two that go together; the gradients of each input and weight have its slopes."""
    given = {name: value for feature in features for name, value in FEATURES[feature].items()}
    at = Columns(**given)
    layer, xs, padding = made(at, given)
    fixed = () if padding is None else (padding,)
    xs = [x.requires_grad_() for x in xs]
    values = oracle.inputs(*map(array, xs)) | weights(layer)
    hidden = None if padding is None else padding.numpy()

    def formula(values: oracle.Values) -> Array:
        return oracle.attention(at, values, hidden)

    y = layer(*xs, *fixed)
    near = IN_FLOAT32 if "rope" in features or "alibi" in features else ROUNDING
    assert distance(y, formula(values)) < near

    dy = tokens(*y.shape)
    y.backward(dy)
    tensors = {**{f"input {n}": x for n, x in enumerate(xs, 1)}, **dict(layer.named_parameters())}
    assert tensors.keys() == values.keys()
    for name, tensor in tensors.items():
        direction = np.random.default_rng(1).normal(size=tensor.shape)
        expected = oracle.slope(formula, values, name, direction, array(dy))
        size = float(tensor.grad.norm()) + 1.0  # a gradient may be zero, such as of the keys' bias
        assert abs(float((array(tensor.grad) * direction).sum()) - expected) < near * size, name


def of_library(name: str) -> Any:
    """Return a library of models; the test is skipped if it isn't installed."""
    try:
        return library(name)
    except Unresolved as missing:
        pytest.skip(str(missing))


def same(own: Attention, y: Tensor, *xs: Tensor, near: float = ROUNDING) -> None:
    """Assert that a layer has the same output as another module."""
    assert distance(own(*xs), array(y)) < near


@pytest.mark.parametrize("qk_norm", ["none", "rms", "layer"])
def test_timms_attention(qk_norm: str) -> None:
    """With defaults, biases or norms it is timm's `Attention`, whose state dict it loads as it is."""
    norms = {"none": None, "rms": of_library("timm").layers.RmsNorm, "layer": of_library("timm").layers.LayerNorm}
    for qkv_bias in (False, True):
        theirs = randomised(
            of_library("timm").layers.Attention(
                CHAN, HEADS, qkv_bias=qkv_bias, qk_norm=qk_norm != "none", norm_layer=norms[qk_norm]
            )
        )
        own = Attention(CHAN, CHAN, HEADS, qkv_bias, num_tokens=10, qk_norm=qk_norm).double()
        own.load_state_dict(theirs.state_dict())
        x = tokens(BATCH, 10, CHAN)
        same(own, theirs(x), x)


@pytest.mark.parametrize("side", [2, 3, 6])
def test_swins_windows_and_bias(side: int) -> None:
    """With a bias, a window is Swin's `WindowAttention` in the partition of timm, and undone as timm undoes it.

    Swin's state dict is loaded as it is.
    """
    swin = of_library("timm").models.swin_transformer
    theirs = randomised(swin.WindowAttention(CHAN, HEADS, window_size=side))
    own = Attention(CHAN, CHAN, HEADS, True, num_tokens=36, attn_bias="relative", window_size=side).double()
    own.load_state_dict(theirs.state_dict())
    x = tokens(BATCH, 36, CHAN)
    parts = swin.window_partition(x.view(BATCH, 6, 6, CHAN), (side, side)).flatten(1, 2)
    assert torch.equal(windows(x, side), parts)
    y = swin.window_reverse(theirs(parts).view(-1, side, side, CHAN), (side, side), 6, 6)
    same(own, y.flatten(1, 2), x)


@pytest.mark.parametrize("prefix", [0, 1, 5])
def test_rotary_embeddings_of_timm(prefix: int) -> None:
    """With tokens before the grid it is timm's `AttentionRope`, and EVA02's `EvaAttention` without a norm inside."""
    timm = of_library("timm")
    side, head_dim = 4, CHAN // 2
    angles = timm.layers.RotaryEmbeddingCat(head_dim, in_pixels=False, feat_shape=(side, side)).get_embed().double()
    classes = {
        timm.layers.AttentionRope: {"qkv_bias": False},
        timm.models.eva.EvaAttention: {"qkv_bias": False, "scale_norm": False},
    }
    for module, options in classes.items():
        theirs = randomised(module(CHAN, 2, num_prefix_tokens=prefix, **options))
        own = Attention(CHAN, CHAN, 2, num_tokens=prefix + side**2, rope="axial").double()
        own.load_state_dict(theirs.state_dict())
        x = tokens(BATCH, prefix + side**2, CHAN)
        same(own, theirs(x, rope=angles), x, near=IN_FLOAT32)
