"""The steps of the articles one by one, head by head."""

import torch
from torch import Tensor

from impls.attend import hide
from impls.modules.core import with_attend


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
    """Return attention computed for one head after the other, with the softmax written out.

    q, k `[B, H, N, D]`, v `[B, H, N, Dv]`, result `[B, H, N, Dv]`; `mask` is None or "causal".
    Source: Karim, "Illustrated: Self-Attention" (2019), steps 4 to 7, after Vaswani et al. 2017.
    """
    heads = [_head(q[:, h], k[:, h], v[:, h], scale, mask) for h in range(q.shape[1])]
    return torch.stack(heads, dim=1)


def _head(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: str | None) -> Tensor:
    scores = (q @ k.transpose(-2, -1)) * scale  # [B, N, N]
    scores = hide(scores, mask)
    weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ v  # [B, N, Dv]


adapt = with_attend(attend)
