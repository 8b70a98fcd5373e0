"""Softmax over blocks of keys with a running maximum and sum; memory is linear in the number of tokens."""

import torch
from torch import Tensor

from impls.attend import hide
from impls.catalogue import BLOCK_TOKENS
from impls.contract import with_attend


def attend(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None, attn_mask: Tensor | None = None,
    block_tokens: int = BLOCK_TOKENS,
) -> Tensor:  # fmt: skip
    """Return attention accumulated block by block; the `[Nq, Nk]` scores never exist as a whole.

    q `[B, H, Nq, D]`, k `[B, H, Nk, D]`, v `[B, H, Nk, Dv]`, result `[B, H, Nq, Dv]`.
    A masked block is computed whole, so the mask saves no work.
    If gradients are recorded, autograd keeps every block, so the memory is quadratic again.
    Source: Milakov and Gimelshein 2018, arXiv 1805.02867; Rabe and Staats 2021, arXiv 2112.05682.
    """
    q = q * scale
    # finite, and at most any visible score
    maximum = q.new_full((*q.shape[:-1], 1), torch.finfo(q.dtype).min)  # [B, H, Nq, 1]
    total = q.new_zeros((*q.shape[:-1], 1))  # [B, H, Nq, 1]
    output = q.new_zeros((*q.shape[:-1], v.shape[-1]))  # [B, H, Nq, Dv]
    blocks = zip(torch.split(k, block_tokens, dim=-2), torch.split(v, block_tokens, dim=-2), strict=True)
    for number, (k_block, v_block) in enumerate(blocks):
        scores = hide(q @ k_block.transpose(-2, -1), mask, attn_mask, number * block_tokens)  # [B, H, Nq, block]
        new_maximum = maximum.maximum(scores.amax(dim=-1, keepdim=True))
        weights = (scores - new_maximum).exp()
        correction = (maximum - new_maximum).exp()
        total = total * correction + weights.sum(dim=-1, keepdim=True)
        output = output * correction + weights @ v_block
        maximum = new_maximum
    if attn_mask is not None:
        total = total.clamp(min=1)  # 0 only if a query sees no key, because the largest weight is 1
    return output / total


adapt = with_attend(attend)
