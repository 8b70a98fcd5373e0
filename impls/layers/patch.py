"""Patch embedding, then attention."""

from typing import Any

from torch import Tensor, nn

from impls.attend import eager
from impls.catalogue import NO_MASK
from impls.contract import Attend, fitted
from impls.layers import merge_heads, split_heads


class PatchAttention(nn.Module):
    """A patch embedding, then multi-head self-attention with an output projection.

    x `[B, in_channels, height, width]` -> y `[B, N, embed_dim]`; N is the number of patches, row by row.
    `mask` is "none" or "causal": then a patch attends to itself and those before it.
    The source takes `heads` but never uses it; with one head this layer computes the source's function.
    `heads` must divide `embed_dim`. Raises ValueError if a side of the image is not divisible by `patch_size`.
    Source: a notebook on QKV attention for images, after Dosovitskiy et al. 2020 (arXiv 2010.11929).
    """

    attend: Attend
    asks = ()

    def __init__(
        self,
        in_channels: int = 3,
        patch_size: int = 4,
        embed_dim: int = 64,
        heads: int = 1,
        mask: str = NO_MASK,
    ) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.heads = heads
        self.scale = (embed_dim // heads) ** -0.5
        self.proj = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=patch_size)
        self.to_q = nn.Linear(embed_dim, embed_dim)
        self.to_k = nn.Linear(embed_dim, embed_dim)
        self.to_v = nn.Linear(embed_dim, embed_dim)
        self.to_out = nn.Linear(embed_dim, embed_dim)
        self.mask = mask
        self.attend = fitted(eager.attend, self)

    def input_shape(self, point: Any) -> tuple[int, ...]:
        """Return the shape of images at a point."""
        return point.batch, point.token_len // self.patch_size**2, point.image_size, point.image_size

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output `[B, N, embed_dim]` for images x `[B, in_channels, height, width]`."""
        tokens = self.embed(x)
        q, k, v = (split_heads(projection(tokens), self.heads) for projection in (self.to_q, self.to_k, self.to_v))
        y: Tensor = self.to_out(merge_heads(self.attend(q, k, v, self.scale)))
        return y

    def embed(self, x: Tensor) -> Tensor:
        """Return a token `[B, N, embed_dim]` for each patch of images x, row by row."""
        height, width = x.shape[-2:]
        if height % self.patch_size or width % self.patch_size:
            raise ValueError(f"image sides must be divisible by patch_size={self.patch_size}, got {height}×{width}")
        tokens: Tensor = self.proj(x).flatten(2).transpose(1, 2)
        return tokens
