"""The core as the source writes it: two matrix products with a softmax between them."""

from torch import Tensor

from impls.attend import hide, softmax
from impls.contract import repeated
from impls.modules.core import with_attend


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    *,
    mask: str | None = None,
    attn_mask: Tensor | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return `softmax((q·scale) kᵀ) v`, with the scale on the queries as the source writes it.

    q `[B, H, Nq, D]`, k `[B, H, Nk, D]`, v `[B, H, Nk, Dv]`, result `[B, H, Nq, Dv]`.
    Source: LANL vision_transformers_explained, `modules/attention.py`, which has no mask.
    """
    if enable_gqa:
        k, v = repeated(q, k, v)
    scores = (q * scale) @ k.transpose(-2, -1)  # [B, H, Nq, Nk]
    scores = hide(scores, mask, attn_mask)
    # the same name as in the source, so that the raw scores can be freed
    scores = scores.softmax(dim=-1) if attn_mask is None else softmax(scores)
    return scores @ v


adapt = with_attend(attend, "eager")
