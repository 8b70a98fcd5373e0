"""The vision-transformer attention layer."""

from torch import Tensor, nn

from impls.attend import eager
from impls.catalogue import FIXED, NO_MASK
from impls.contract import Attend, fitted
from impls.layers import merge_heads
from impls.packing import asked


class ViTAttention(nn.Module):
    """Multi-head self-attention with an output projection and a skip that adds the values.

    x `[B, N, dim]` -> y `[B, N, chan]`. If items have different `lengths`, the second input is a boolean mask `[B, N]`,
    True at padding; with a core that takes packed items, x is `[1, T, dim]` and there is no such mask.
    The skip adds v, not x, because `dim` may differ from `chan`.
    `qk_scale` multiplies the queries; None means `D**-0.5` with `D = chan / num_heads`, a whole number.
    `mask` is "none" or "causal": then a token attends to itself and those before it.
    The source writes `qk_scale or D**-0.5`, so 0.0 means the default there; here it means 0.0.
    Source: LANL vision_transformers_explained, `modules/attention.py`, after T2T-ViT (arXiv 2101.11986).
    """

    attend: Attend

    def __init__(
        self,
        dim: int,
        chan: int,
        num_heads: int = 1,
        qkv_bias: bool = False,
        qk_scale: float | None = None,
        mask: str = NO_MASK,
        lengths: str = FIXED,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scale = (chan // num_heads) ** -0.5 if qk_scale is None else qk_scale
        self.qkv = nn.Linear(dim, 3 * chan, bias=qkv_bias)
        self.proj = nn.Linear(chan, chan)
        self.mask, self.lengths = mask, lengths
        self.asks = ("attn_mask",) * (lengths != FIXED)
        """The keywords that this layer needs of its core."""
        self.attend = fitted(eager.attend, self)

    def forward(self, x: Tensor, *padding: Tensor) -> Tensor:
        """Return the layer's output `[B, N, chan]` for tokens x `[B, N, dim]` and a padding mask, if any."""
        batch, tokens, _ = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.num_heads, -1)  # [B, N, 3, H, D]
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each [B, H, N, D]
        o = self.attend(q, k, v, self.scale, **asked(self, padding))
        y: Tensor = merge_heads(v) + self.proj(merge_heads(o))
        return y
