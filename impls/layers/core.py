"""The core alone, without weights."""

from typing import Any

from torch import Tensor, nn

from impls.attend import eager
from impls.contract import NO_MASK, PADDING, Attend, fitted
from impls.layers.attention import with_padding


class Core(nn.Module):
    """The core of attention as a layer: queries, keys and values are its inputs.

    q `[B, H, N, D]`, k and v `[B, Hkv, M, D]`, all contiguous -> o `[B, H, N, D]`. D is `channels / num_heads`.
    With a padding mask a fourth input says which keys are padding, `[B, M]`, boolean.
    `mask` is "none", "causal" or "padding".
    Source: `torch.nn.functional.scaled_dot_product_attention`, PyTorch documentation.
    """

    attend: Attend

    input_sd = 2**0.5
    """The standard deviation of inputs: logits have one of 2, as those of layers with projections."""

    def __init__(
        self,
        channels: int,
        num_heads: int = 1,
        num_kv_heads: int | None = None,
        qk_scale: float | None = None,
        mask: str = NO_MASK,
    ) -> None:
        super().__init__()
        self.scale = (channels // num_heads) ** -0.5 if qk_scale is None else qk_scale
        self.mask = mask
        self.asks = ("attn_mask",) * (mask == PADDING) + ("enable_gqa",) * (num_kv_heads is not None)
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
        asked: dict[str, Any] = {"attn_mask": with_padding(None, *padding)} if padding else {}
        if "enable_gqa" in self.asks:
            asked["enable_gqa"] = True
        return self.attend(q, k, v, self.scale, **asked)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"scale={self.scale}, mask={self.mask}, asks={self.asks}"
