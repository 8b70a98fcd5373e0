"""The core of attention, one implementation per file: `attend(q, k, v, scale) -> o` on `[B, H, N, D]`.

The keywords have the same meaning as in `F.scaled_dot_product_attention`. `mask` is None or "causal": query i sees the
keys 0 to i. `attn_mask` is broadcast to `[B, H, Nq, Nk]`: a boolean mask is True at visible keys, a floating one is
added to the scores. With `enable_gqa` k and v have fewer heads, each for a group of consecutive heads of q;
`impls.contract` repeats them for a core without it.
A query whose keys are all hidden gives zeros, except in `eager.attend`, whose layers have no such query.
This module has the functions that cores share.
"""

import torch
from torch import Tensor


def hidden(queries: int, keys: int, device: torch.device, first_key: int = 0) -> Tensor:
    """Return a boolean causal mask `[queries, keys]`, True at hidden keys.

    `first_key` is the index of the first key among all keys.
    """
    query = torch.arange(queries, device=device)[:, None]
    key = torch.arange(first_key, first_key + keys, device=device)
    return key > query


def hide(scores: Tensor, mask: str | None, attn_mask: Tensor | None = None, first_key: int = 0) -> Tensor:
    """Return scores `[..., queries, keys]` with both masks applied: minus infinity at hidden keys.

    `first_key` is the index of the first key among all keys.
    If both masks are None, the scores are returned unchanged.
    """
    queries, keys = scores.shape[-2:]
    if mask is not None:
        scores = scores.masked_fill(hidden(queries, keys, scores.device, first_key), float("-inf"))
    if attn_mask is None:
        return scores
    if attn_mask.shape[-1] > 1:  # else it is the same for all keys
        attn_mask = attn_mask[..., first_key : first_key + keys]
    if attn_mask.dtype == torch.bool:
        return scores.masked_fill(~attn_mask, float("-inf"))
    return scores + attn_mask.to(scores.dtype)


def softmax(scores: Tensor) -> Tensor:
    """Return the softmax over the keys, with zeros for a query whose keys are all hidden."""
    sees_nothing = (scores == float("-inf")).all(dim=-1, keepdim=True)
    return scores.masked_fill(sees_nothing, 0.0).softmax(dim=-1).masked_fill(sees_nothing, 0.0)
