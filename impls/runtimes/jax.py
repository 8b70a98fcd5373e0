"""JAX: the layers written in jax.numpy around jax.nn.dot_product_attention, and compiled by XLA."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from torch.utils import dlpack

from impls.contract import NO_MASK, Unsupported
from impls.layers.conv import ConvSelfAttention
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
        self._weights = {name: jnp.from_dlpack(weight.detach()) for name, weight in self.layer.named_parameters()}

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


def _linear(weights: Weights, name: str, x: Any) -> Any:
    y = x @ weights[f"{name}.weight"].T
    return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y


def _attend(q: Any, k: Any, v: Any, layer: Any) -> Any:
    """Return the core for q, k, v `[B, N, H, D]`."""
    import jax

    if v.shape[-1] != k.shape[-1] or k.shape[-1] == 1:
        return _scored(q, k, v, layer)
    return jax.nn.dot_product_attention(q, k, v, scale=layer.scale, is_causal=layer.mask != NO_MASK)


def _scored(q: Any, k: Any, v: Any, layer: Any) -> Any:
    """Return the core written out.

    jax.nn.dot_product_attention refuses keys and values of different width, and XLA aborts the process if heads have
    one channel in bfloat16 (jaxlib 0.10.2).
    """
    import jax
    from jax import numpy as jnp

    scores = jnp.einsum("bqhd,bkhd->bhqk", q * layer.scale, k)
    if layer.mask != NO_MASK:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], dtype=bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


LAYERS: dict[type[nn.Module], Callable[..., Any]] = {
    ViTAttention: _vit,
    SelfAttention: _self,
    PatchAttention: _patch,
    ConvSelfAttention: _conv,
}
