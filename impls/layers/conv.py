"""Convolutional self-attention with a learned residual."""

from typing import Any

import torch
from torch import Tensor, nn

from impls.attend import eager
from impls.catalogue import KEY_SHARE, NO_MASK
from impls.contract import Attend, fitted

GAMMA = 0.5
"""The weight of the attention output when the layer is measured; with the initial 0 the layer returns its input."""


class ConvSelfAttention(nn.Module):
    """Attention over the pixels of a map; the result is added to the map with a learned weight, initially 0.

    x `[B, C, height, width]`, C at least 8 -> y of the same shape; each pixel is a token, queries and keys are C // 8
    wide.
    `mask` is "none" or "causal": then a pixel attends to itself and those before it, row by row.
    With `gamma` = 0 the layer returns x exactly.
    Source: a notebook on QKV attention for images, after SAGAN (Zhang et al. 2018, arXiv 1805.08318),
    which has no scale.
    """

    attend: Attend
    asks = ()

    def __init__(self, in_channels: int, mask: str = NO_MASK) -> None:
        super().__init__()
        key_channels = in_channels // KEY_SHARE
        self.scale = key_channels**-0.5
        self.q = nn.Conv2d(in_channels, key_channels, kernel_size=1)
        self.k = nn.Conv2d(in_channels, key_channels, kernel_size=1)
        self.v = nn.Conv2d(in_channels, in_channels, kernel_size=1)
        self.gamma = nn.Parameter(torch.zeros(1))
        self.mask = mask
        self.attend = fitted(eager.attend, self)

    def draw_weights(self) -> None:
        """Set the weight `gamma`, because with its initial 0 any implementation would be correct."""
        nn.init.constant_(self.gamma, GAMMA)

    def input_shape(self, point: Any) -> tuple[int, ...]:
        """Return the shape of maps at a point."""
        return point.batch, point.channels, point.image_size, point.image_size

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output `[B, C, height, width]` for maps x of the same shape."""
        q, k, v = (as_tokens(projection(x)) for projection in (self.q, self.k, self.v))
        o = self.attend(q, k, v, self.scale)  # [B, 1, N, C]
        return self.gamma * as_maps(o, x) + x


def as_tokens(maps: Tensor) -> Tensor:
    """Return maps `[B, D, height, width]` as one head of tokens `[B, 1, height·width, D]`."""
    return maps.flatten(2).transpose(1, 2).unsqueeze(1)


def as_maps(tokens: Tensor, like: Tensor) -> Tensor:
    """Return one head of tokens `[B, 1, N, C]` as maps of the shape of `like`."""
    maps: Tensor = tokens.squeeze(1).transpose(1, 2).unflatten(2, like.shape[-2:])
    return maps
