"""The steps of introductory articles one by one, head by head."""

import torch
from torch import Tensor

from impls.attend import hide
from impls.contract import with_attend


def attend(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None, attn_mask: Tensor | None = None
) -> Tensor:
    """Return attention computed for one head after the other, with the softmax written out.

    q `[B, H, Nq, D]`, k `[B, H, Nk, D]`, v `[B, H, Nk, Dv]`, result `[B, H, Nq, Dv]`.
    Source: Karim, "Illustrated: Self-Attention" (2019), steps 4 to 7, after Vaswani et al. 2017.
    """
    if attn_mask is not None:
        attn_mask = attn_mask.expand(*q.shape[:-1], k.shape[-2])
    heads = [
        _head(q[:, h], k[:, h], v[:, h], scale, mask, None if attn_mask is None else attn_mask[:, h])
        for h in range(q.shape[1])
    ]
    return torch.stack(heads, dim=1)


def _head(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: str | None, attn_mask: Tensor | None) -> Tensor:
    scores = (q @ k.transpose(-2, -1)) * scale  # [B, Nq, Nk]
    scores = hide(scores, mask, attn_mask)
    maximum = scores.amax(dim=-1, keepdim=True)
    if attn_mask is not None:  # a query without keys has maximum minus infinity and sum 0
        maximum = maximum.clamp(min=torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - maximum)
    del maximum  # free it before the peak of memory
    total = weights.sum(dim=-1, keepdim=True)
    if attn_mask is not None:
        total = total.clamp(min=1)  # other sums are at least 1, the largest weight
    weights = weights / total
    return weights @ v  # [B, Nq, Dv]


adapt = with_attend(attend)
