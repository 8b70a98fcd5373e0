"""JAX: the layers written in jax.numpy around jax.nn.dot_product_attention, and compiled by XLA."""

import math
import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from torch import Tensor, nn
from torch.utils import dlpack

from impls.catalogue import CAUSAL, PADDING
from impls.contract import Unsupported
from impls.layers.attention import NORM_EPS, Attention
from impls.layers.conv import ConvSelfAttention
from impls.layers.core import Core
from impls.layers.patch import PatchAttention
from impls.layers.self_attention import SelfAttention
from impls.layers.vit import ViTAttention
from impls.runtimes import DTYPES, Operator, Runtime

Weights = dict[str, Any]

OPERATION = re.compile(r"= (\w+)\[[\d,]*\]\S* (dot|convolution|custom-call|exponential|reduce)\(")
"""The operations of XLA's optimised program that do the work of a layer."""


class JAX(Runtime):
    """A layer in JAX; weights, inputs and outputs are not copied.

    XLA has no fused attention on a CPU. Matrix products have the highest precision, as torch's have.
    Source: JAX documentation, `jax.nn.dot_product_attention`.
    """

    title = "JAX"

    def compile(self, *xs: Tensor) -> None:
        """Compile the layer for inputs like these. Raises Unsupported for a layer that is not written here."""
        import jax
        from jax import numpy as jnp

        layer = next((written for kind, written in LAYERS.items() if isinstance(self.layer, kind)), None)
        if layer is None:
            raise Unsupported(f"{type(self.layer).__name__} is not written in JAX")
        self._array = jnp.from_dlpack
        named = chain(self.layer.named_parameters(), self.layer.named_buffers())
        self._weights = {name: jnp.from_dlpack(weight.detach()) for name, weight in named}

        def function(weights: Weights, *xs: Any) -> Any:
            return layer(self.layer, weights, *xs)

        with jax.default_matmul_precision("highest"):
            try:
                self._compiled = jax.jit(function).lower(self._weights, *map(self._array, xs)).compile()
            except ValueError as error:
                if "not supported" not in str(error):
                    raise
                raise Unsupported(f"JAX: {error}") from None

    def run(self, *xs: Tensor) -> Tensor:
        """Return the output."""
        result: Tensor = dlpack.from_dlpack(self._compiled(self._weights, *map(self._array, xs)).block_until_ready())
        return result

    def operators(self) -> Sequence[Operator]:
        """Return the operations of XLA's optimised program that compute products, exponentials and sums."""
        return [Operator(name, DTYPES.get(dtype, "")) for dtype, name in OPERATION.findall(self._compiled.as_text())]


def _vit(layer: ViTAttention, weights: Weights, x: Any) -> Any:
    batch, tokens, _ = x.shape
    qkv = _linear(weights, "qkv", x).reshape(batch, tokens, 3, layer.num_heads, -1)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]  # each [B, N, H, D]
    o = _attend(q, k, v, layer).reshape(batch, tokens, -1)
    return v.reshape(batch, tokens, -1) + _linear(weights, "proj", o)


def _self(layer: SelfAttention, weights: Weights, x: Any) -> Any:
    q, k, v = (_linear(weights, name, x)[:, :, None] for name in ("query", "key", "value"))  # each [B, N, 1, D]
    return _attend(q, k, v, layer)[:, :, 0]


def _patch(layer: PatchAttention, weights: Weights, x: Any) -> Any:
    batch, channels, height, width = x.shape
    size, embedding = layer.patch_size, weights["proj.weight"]
    rows, columns = height // size, width // size
    patches = x.reshape(batch, channels, rows, size, columns, size).transpose(0, 2, 4, 1, 3, 5)
    tokens = patches.reshape(batch, rows * columns, -1) @ embedding.reshape(len(embedding), -1).T + weights["proj.bias"]
    shape = batch, rows * columns, layer.heads, -1
    q, k, v = (_linear(weights, name, tokens).reshape(shape) for name in ("to_q", "to_k", "to_v"))
    return _linear(weights, "to_out", _attend(q, k, v, layer).reshape(tokens.shape))


def _conv(layer: ConvSelfAttention, weights: Weights, x: Any) -> Any:
    batch, channels = x.shape[:2]
    pixels = x.reshape(batch, channels, -1).transpose(0, 2, 1)  # [B, N, C]
    q, k, v = (
        (pixels @ weights[f"{name}.weight"][:, :, 0, 0].T + weights[f"{name}.bias"])[:, :, None]
        for name in ("q", "k", "v")
    )
    o = _scored(q, k, v, layer)[:, :, 0]
    return weights["gamma"] * o.transpose(0, 2, 1).reshape(x.shape) + x


def _attention(layer: Attention, weights: Weights, x: Any, *others: Any) -> Any:
    from jax import numpy as jnp

    shape, size = x.shape, layer.window_size
    if size is not None:
        count = math.isqrt(shape[1]) // size
        x = x.reshape(-1, count, size, count, size, shape[2]).swapaxes(2, 3).reshape(-1, size**2, shape[2])
    heads, kv_heads = layer.num_heads, layer.num_kv_heads
    if hasattr(layer, "qkv"):
        qkv = _heads(_linear(weights, "qkv", x), heads + 2 * kv_heads)
        q, k, v = jnp.split(qkv, [heads, heads + kv_heads], axis=2)  # [B, N, H or Hkv, D]
    else:
        q = _heads(_linear(weights, "q", x), heads)
        k, v = jnp.split(_heads(_linear(weights, "kv", others[0]), 2 * kv_heads), 2, axis=2)
    q, k = _normed(layer.q_norm, weights, "q_norm", q), _normed(layer.k_norm, weights, "k_norm", k)
    if layer.rope != "none":
        q, k = _rotated(q, weights["sin"], weights["cos"]), _rotated(k, weights["sin"], weights["cos"])
    o = _attend(q, k, v, layer, _bias(layer, weights), others[-1] if layer.mask == PADDING else None)
    y = _linear(weights, "proj", o.reshape(*o.shape[:2], -1))
    if size is not None:
        y = y.reshape(-1, count, count, size, size, y.shape[2]).swapaxes(2, 3)
    return y.reshape(*shape[:2], -1)


def _core(layer: Core, weights: Weights, q: Any, k: Any, v: Any, *padding: Any) -> Any:
    q, k, v = (each.swapaxes(1, 2) for each in (q, k, v))
    return _attend(q, k, v, layer, weights.get("bias"), *padding).swapaxes(1, 2)


def _heads(tokens: Any, heads: int) -> Any:
    return tokens.reshape(*tokens.shape[:2], heads, -1)


def _normed(norm: nn.Module, weights: Weights, name: str, x: Any) -> Any:
    """Return queries or keys `[B, N, H, D]` normalised over D, in float32 inside."""
    from jax import numpy as jnp

    if isinstance(norm, nn.Identity):
        return x
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(axis=-1, keepdims=True) if isinstance(norm, nn.LayerNorm) else wide
    scaled = centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + NORM_EPS)
    return (scaled * weights[f"{name}.weight"] + weights.get(f"{name}.bias", 0)).astype(x.dtype)


def _rotated(x: Any, sin: Any, cos: Any) -> Any:
    """Return queries or keys `[B, N, H, D]` of which the last tokens are turned by their angles `[s², D]`."""
    from jax import numpy as jnp

    prefix = x.shape[1] - len(sin)
    placed = x[:, prefix:]
    swapped = jnp.stack([-placed[..., 1::2], placed[..., ::2]], axis=-1).reshape(placed.shape)
    return jnp.concatenate([x[:, :prefix], placed * cos[:, None] + swapped * sin[:, None]], axis=1)


def _bias(layer: Attention, weights: Weights) -> Any:
    """Return the bias `[1, H, N, N]`, None if there is none."""
    from jax import numpy as jnp

    if layer.attn_bias != "relative":
        return weights.get("alibi")
    bias = weights["relative_position_bias_table"][weights["relative_position_index"]].transpose(2, 0, 1)
    return jnp.pad(bias, ((0, 0), *[(layer.prefix, 0)] * 2))[None]


def _linear(weights: Weights, name: str, x: Any) -> Any:
    y = x @ weights[f"{name}.weight"].T
    return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y


def _attend(q: Any, k: Any, v: Any, layer: Any, bias: Any = None, padding: Any = None) -> Any:
    """Return the core for q, k, v `[B, N, H, D]`, a bias `[1, H, N, M]` and a padding mask `[B, M]`."""
    import jax

    if v.shape[-1] != k.shape[-1] or k.shape[-1] == 1:
        if bias is not None or padding is not None or k.shape[2] < q.shape[2]:
            raise Unsupported("heads of one channel with a bias, padding or grouped heads are not written in JAX")
        return _scored(q, k, v, layer)
    visible = None if padding is None else ~padding[:, None, None]
    return jax.nn.dot_product_attention(q, k, v, bias, visible, scale=layer.scale, is_causal=layer.mask == CAUSAL)


def _scored(q: Any, k: Any, v: Any, layer: Any) -> Any:
    """Return the core written out.

    jax.nn.dot_product_attention refuses keys and values of different width, and XLA aborts the process if heads have
    one channel in bfloat16 (jaxlib 0.10.2).
    """
    import jax
    from jax import numpy as jnp

    scores = jnp.einsum("bqhd,bkhd->bhqk", q * layer.scale, k)
    if layer.mask == CAUSAL:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], dtype=bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


LAYERS: dict[type[nn.Module], Callable[..., Any]] = {
    ViTAttention: _vit,
    SelfAttention: _self,
    PatchAttention: _patch,
    ConvSelfAttention: _conv,
    Attention: _attention,
    Core: _core,
}
