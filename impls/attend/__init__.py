"""The core of attention, one implementation per file: `attend(q, k, v, scale) -> o` on `[B, H, N, D]`.

Here is what they share: the causal mask, with which a query attends to its own key and those before it.
"""

import torch
from torch import Tensor


def hidden(queries: int, keys: int, device: torch.device, first_key: int = 0) -> Tensor:
    """Return a boolean tensor `[queries, keys]` that is True at the keys that a query may not see.

    `first_key` is the index of the first of these keys among all keys.
    """
    query = torch.arange(queries, device=device)[:, None]
    key = torch.arange(first_key, first_key + keys, device=device)
    return key > query


def hide(scores: Tensor, mask: str | None, first_key: int = 0) -> Tensor:
    """Return scores `[..., queries, keys]` with minus infinity at the keys that a query may not see.

    If `mask` is None, the scores are returned unchanged.
    """
    if mask is None:
        return scores
    queries, keys = scores.shape[-2:]
    return scores.masked_fill(hidden(queries, keys, scores.device, first_key), float("-inf"))
