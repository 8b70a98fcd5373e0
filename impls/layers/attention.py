"""Multi-head attention with the options of common models: context, bias, windows, norms, rotary, grouped heads."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from impls import packing
from impls.attend import eager
from impls.catalogue import FIXED, NO_MASK
from impls.contract import Attend, fitted
from impls.layers import merge_heads, split_heads

NORMS = {"none": nn.Identity, "rms": nn.RMSNorm, "layer": nn.LayerNorm}
"""The norms of queries and keys by the values of `qk_norm`."""

NORM_EPS = 1e-6
"""The epsilon of the norms, as in timm."""

NORM_WEIGHTS, TABLE_SD = (1.0, 2.0), 1.0
"""The range of the norms' weights, and the standard deviation of the bias table, when the layer is measured; initially
they are all the same, or nearly zero."""

ROPE_BASE = 10_000
"""The base of the wavelengths of rotary embeddings (Su et al. 2021, arXiv 2104.09864, section 3.2.2)."""


class Attention(nn.Module):
    """Multi-head attention with an output projection; with the defaults it equals timm's `Attention`, with its weights.

    x `[B, N, dim]` -> y `[B, N, chan]`. If `num_kv_tokens` is given, keys and values come from the second input, a
    context `[B, M, context_dim]`. If items have different `lengths`, the last input is a boolean mask `[B, N]`, True at
    padding; with a core that takes packed items, x is `[1, T, dim]` and there is no such mask.
    D is `chan / num_heads`; keys and values have `num_kv_heads` heads, a divisor of `num_heads`, each for a group of
    consecutive heads of queries.

    `qk_norm` ("none", "rms", "layer") normalises queries and keys over D, with learned weights.
    The last s² of N tokens form the largest square grid that fits; tokens before it, such as a class token, have no
    position. `rope` ("none", "axial") rotates queries and keys by their position, `attn_bias` ("none", "relative",
    "alibi") adds a bias by the positions of both. `window_size` splits the grid into windows of that many tokens per
    side; tokens attend within their window, and positions are relative to it.
    `mask` is "none" or "causal".
    Sources: timm's `Attention` (`timm/layers/attention.py`), and the ones that the functions below name.
    """

    attend: Attend
    sin: Tensor
    cos: Tensor
    relative_position_index: Tensor
    alibi: Tensor

    def __init__(
        self,
        dim: int,
        chan: int,
        num_heads: int = 8,
        qkv_bias: bool = False,
        qk_scale: float | None = None,
        *,
        num_tokens: int,
        num_kv_tokens: int | None = None,
        context_dim: int | None = None,
        num_kv_heads: int | None = None,
        qk_norm: str = "none",
        rope: str = "none",
        attn_bias: str = "none",
        window_size: int | None = None,
        mask: str = NO_MASK,
        lengths: str = FIXED,
    ) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads or num_heads
        width = chan // num_heads
        kv_chan = self.num_kv_heads * width
        self.scale = width**-0.5 if qk_scale is None else qk_scale
        self.window_size = window_size
        if num_kv_tokens is None:
            self.qkv = nn.Linear(dim, chan + 2 * kv_chan, bias=qkv_bias)
        else:
            self.q = nn.Linear(dim, chan, bias=qkv_bias)
            self.kv = nn.Linear(context_dim or dim, 2 * kv_chan, bias=qkv_bias)
        self.q_norm, self.k_norm = (NORMS[qk_norm](width, eps=NORM_EPS) for _ in "qk")
        self.proj = nn.Linear(chan, chan)
        self.rope, self.attn_bias = rope, attn_bias
        self._place(num_tokens if window_size is None else window_size**2, width)
        self.mask, self.lengths = mask, lengths
        masked = attn_bias != "none" or lengths != FIXED
        self.asks = ("attn_mask",) * masked + ("enable_gqa",) * (self.num_kv_heads < num_heads)
        """The keywords that this layer needs of its core."""
        self.attend = fitted(eager.attend, self)

    def _place(self, tokens: int, width: int) -> None:
        """Make the tensors that depend on positions: the angles of the rotation, and a bias or its table."""
        if self.rope == "axial":
            self.register_buffer("sin", axial_angles(tokens, width).sin(), persistent=False)
            self.register_buffer("cos", axial_angles(tokens, width).cos(), persistent=False)
        if self.attn_bias == "relative":
            side = math.isqrt(tokens)
            self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * side - 1) ** 2, self.num_heads))
            nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
            self.register_buffer("relative_position_index", relative_index(side), persistent=False)
            self.prefix = tokens - side**2
        elif self.attn_bias == "alibi":
            self.register_buffer("alibi", alibi(tokens, self.num_heads), persistent=False)

    def draw_weights(self) -> None:
        """Redraw weights whose initial values would hide that an implementation skips a norm or a bias."""
        for name, weight in self.named_parameters():
            if name == "relative_position_bias_table":
                nn.init.normal_(weight, std=TABLE_SD)
            elif "_norm." in name:
                nn.init.uniform_(weight, *NORM_WEIGHTS)

    def input_shapes(self, point: Any) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of x and of the context at a point."""
        x = (point.batch, point.num_tokens, point.token_len)
        return (x,) if point.num_kv_tokens is None else (x, (point.batch, point.num_kv_tokens, point.context_dim))

    def forward(self, x: Tensor, *others: Tensor) -> Tensor:
        """Return the layer's output `[B, N, chan]` for tokens x, a context if it has one, and a padding mask."""
        tokens = x.shape[1]
        x = x if self.window_size is None else windows(x, self.window_size)
        q, k, v = self.project(x, *others)
        q, k = self.q_norm(q), self.k_norm(k)
        if self.rope == "axial":
            q, k = rotated(q, self.sin, self.cos), rotated(k, self.sin, self.cos)
        asked = packing.asked(self, others if self.lengths != FIXED else (), self.bias())
        y: Tensor = self.proj(merge_heads(self.attend(q, k, v, self.scale, **asked)))
        return y if self.window_size is None else undone(y, self.window_size, tokens)

    def project(self, x: Tensor, *others: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries `[B, H, N, D]`, keys and values `[B, Hkv, M, D]`."""
        if hasattr(self, "qkv"):
            heads = split_heads(self.qkv(x), self.num_heads + 2 * self.num_kv_heads)
            q, k, v = heads.split([self.num_heads, self.num_kv_heads, self.num_kv_heads], dim=1)
        else:
            q = split_heads(self.q(x), self.num_heads)
            k, v = split_heads(self.kv(others[0]), 2 * self.num_kv_heads).chunk(2, dim=1)
        return q, k, v

    def bias(self) -> Tensor | None:
        """Return the bias that is added to the scores, `[1, H, N, N]`; None without one."""
        if self.attn_bias == "relative":
            return relative_bias(self.relative_position_bias_table, self.relative_position_index, self.prefix)
        return self.alibi if self.attn_bias == "alibi" else None


def windows(x: Tensor, size: int) -> Tensor:
    """Return tokens `[B, s², C]` of a grid as windows `[B · (s/size)², size², C]`, row by row.

    Source: Liu et al. 2021 (arXiv 2103.14030), `window_partition` of Swin Transformer.
    """
    side = math.isqrt(x.shape[1])
    grid = x.unflatten(1, (side // size, size, side // size, size))  # [B, s/w, w, s/w, w, C]
    parts: Tensor = grid.transpose(2, 3).reshape(-1, size**2, x.shape[2])
    return parts


def undone(y: Tensor, size: int, tokens: int) -> Tensor:
    """Return windows as tokens of the grid; the inverse of `windows`."""
    count = math.isqrt(tokens) // size
    grid = y.reshape(-1, count, count, size, size, y.shape[2])
    return grid.transpose(2, 3).reshape(-1, tokens, y.shape[2])


def axial_angles(tokens: int, width: int) -> Tensor:
    """Return the angles `[s², D]` of a two-dimensional rotary embedding: half of D for the row, half for the column.

    Each pair of neighbouring channels is rotated by position times frequency. D must be a multiple of 4.
    Source: timm's `RotaryEmbeddingCat` with `in_pixels=False` (`timm/layers/pos_embed_sincos.py`).
    """
    side, bands = math.isqrt(tokens), width // 4
    frequencies = ROPE_BASE ** -(torch.arange(bands, dtype=torch.float32) / bands)
    places = torch.arange(side, dtype=torch.float32)[:, None] * frequencies  # [s, D/4]
    rows, columns = places[:, None].expand(-1, side, -1), places[None].expand(side, -1, -1)
    return torch.cat([rows, columns], dim=-1).flatten(0, 1).repeat_interleave(2, dim=-1)


def rotated(heads: Tensor, sin: Tensor, cos: Tensor) -> Tensor:
    """Return queries or keys `[B, H, N, D]` with the last tokens rotated by the angles, and earlier ones unchanged.

    Source: timm's `apply_rot_embed_cat`, after Su et al. 2021 (arXiv 2104.09864, equation 34).
    """
    prefix = heads.shape[-2] - len(sin)
    before, placed = heads.split([prefix, len(sin)], dim=-2)
    swapped = torch.stack([-placed[..., 1::2], placed[..., ::2]], dim=-1).flatten(-2)
    turned = placed * cos + swapped * sin
    return torch.cat([before, turned], dim=-2) if prefix else turned


def relative_index(side: int) -> Tensor:
    """Return `[s², s²]`: for each pair of tokens in a grid, the row of the bias table for their offset.

    Source: Swin Transformer's `WindowAttention`.
    """
    places = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")).flatten(1)  # [2, s²]
    offsets = places[:, :, None] - places[:, None] + side - 1  # [2, s², s²], from 0
    return offsets[0] * (2 * side - 1) + offsets[1]


def relative_bias(table: Tensor, index: Tensor, prefix: int) -> Tensor:
    """Return the bias `[1, H, N, N]` from a table `[(2s-1)², H]`; it is zero for tokens before the grid."""
    bias = table[index.flatten()].view(*index.shape, -1).permute(2, 0, 1).unsqueeze(0)
    return nn.functional.pad(bias, (prefix, 0, prefix, 0)) if prefix else bias.contiguous()


def alibi(tokens: int, heads: int) -> Tensor:
    """Return the bias `[1, H, N, N]` that decreases with the distance of two tokens: -2^(-8(h+1)/H) · |i - j|.

    Source: Press et al. 2021 (arXiv 2108.12409), in both directions.
    """
    place = torch.arange(tokens)
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    return -(slopes[:, None, None] * (place[:, None] - place).abs())[None]
