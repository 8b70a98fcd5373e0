"""The core as the source writes it: two matrix products with a softmax between them."""

from torch import Tensor

from impls.attend import hide
from impls.modules.core import with_attend


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
    """Return `softmax((q·scale) kᵀ) v`, with the scale on the queries as the source writes it.

    q, k `[B, H, N, D]`, v `[B, H, N, Dv]`, result `[B, H, N, Dv]`; `mask` is None or "causal".
    Source: LANL vision_transformers_explained, `modules/attention.py`, which has no mask.
    """
    scores = (q * scale) @ k.transpose(-2, -1)  # [B, H, N, N]
    scores = hide(scores, mask)
    scores = scores.softmax(dim=-1)  # the same name as in the source, so that the raw scores can be freed
    return scores @ v


adapt = with_attend(attend, "eager")
