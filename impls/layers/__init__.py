"""The layers, written plainly as the reference for every implementation.

`split_heads` and `merge_heads` convert between heads in the channels and heads in a dimension of their own.
"""

from torch import Tensor


def split_heads(tokens: Tensor, heads: int) -> Tensor:
    """Return `[B, N, H·D]` as `[B, H, N, D]`."""
    parts: Tensor = tokens.unflatten(2, (heads, -1))  # [B, N, H, D]
    return parts.transpose(1, 2)


def merge_heads(heads: Tensor) -> Tensor:
    """Return `[B, H, N, D]` as `[B, N, H·D]`."""
    return heads.transpose(1, 2).flatten(2)
