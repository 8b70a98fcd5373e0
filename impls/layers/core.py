"""The core alone, without projections."""

from typing import Any

import torch
from torch import Tensor, nn

from impls import packing
from impls.attend import eager
from impls.catalogue import FIXED, LEARNED, NO_MASK
from impls.contract import Attend, fitted


class Core(nn.Module):
    """The core of attention as a layer: queries, keys and values are its inputs.

    q `[B, H, N, D]`, k and v `[B, Hkv, M, D]`, all contiguous -> o `[B, H, N, D]`. D is `channels / num_heads`.
    If items have different `lengths`, the fourth input is a boolean mask `[B, N]`, True at padding.
    A core that takes packed items gets q, k and v as `[1, H, T, D]` with the tokens of all items.
    `mask` is "none" or "causal". `attn_bias` is "none", "given" or "learned": a bias `[1, H, N, M]`, the
    same for all items, is added to the scores; a learned one is a parameter with a gradient.
    Source: `torch.nn.functional.scaled_dot_product_attention`, PyTorch documentation.
    """

    attend: Attend
    bias: Tensor | None

    input_sd = 2**0.5
    """The standard deviation of inputs, so that logits have one of 2, as in layers with projections."""

    def __init__(
        self,
        channels: int,
        num_heads: int = 1,
        num_kv_heads: int | None = None,
        qk_scale: float | None = None,
        mask: str = NO_MASK,
        *,
        num_tokens: int,
        num_kv_tokens: int | None = None,
        attn_bias: str = "none",
        lengths: str = FIXED,
    ) -> None:
        super().__init__()
        self.scale = (channels // num_heads) ** -0.5 if qk_scale is None else qk_scale
        self.mask = mask
        self.attn_bias = attn_bias
        bias = torch.randn(1, num_heads, num_tokens, num_kv_tokens or num_tokens) if attn_bias != "none" else None
        if bias is not None and attn_bias == LEARNED:
            self.bias = nn.Parameter(bias)
        else:
            self.register_buffer("bias", bias)
        self.lengths = lengths
        masked = attn_bias != "none" or lengths != FIXED
        self.asks = ("attn_mask",) * masked + ("enable_gqa",) * (num_kv_heads is not None)
        """The keywords that this layer needs of its core."""
        self.attend = fitted(eager.attend, self)

    def input_shapes(self, point: Any) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of queries, keys and values at a point."""
        width = point.channels // point.num_heads
        heads, keys = point.num_kv_heads or point.num_heads, point.num_kv_tokens or point.num_tokens
        kv = (point.batch, heads, keys, width)
        return (point.batch, point.num_heads, point.num_tokens, width), kv, kv

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *padding: Tensor) -> Tensor:
        """Return the weighted values `[B, H, N, D]`."""
        return self.attend(q, k, v, self.scale, **packing.asked(self, padding, self.bias))
