"""The core as the source writes it: two matrix products with a softmax between them."""

from torch import Tensor

from impls.attend import hide, softmax
from impls.contract import repeated, with_attend


def attend(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None, attn_mask: Tensor | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Return `softmax((q·scale) kᵀ) v`, with the scale on the queries as the source writes it.

    q `[B, H, Nq, D]`, k `[B, H, Nk, D]`, v `[B, H, Nk, Dv]`, result `[B, H, Nq, Dv]`.
    Source: LANL vision_transformers_explained, `modules/attention.py`, which has no mask.
    """
    if enable_gqa:
        k, v = repeated(q, k, v)
    scores = (q * scale) @ k.transpose(-2, -1)  # [B, H, Nq, Nk]
    scores = hide(scores, mask, attn_mask)
    # the same name as in the source, so that the raw scores can be freed
    scores = scores.softmax(dim=-1)
    return scores @ v


def attend_safely(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None, attn_mask: Tensor | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Return the result of `attend`, with zeros for a query whose keys are all hidden, like torch's function.

    This takes two more passes over the scores. Modules of packages use it, because their masks may have such queries.
    """
    if attn_mask is None:
        return attend(q, k, v, scale, mask=mask, enable_gqa=enable_gqa)
    if enable_gqa:
        k, v = repeated(q, k, v)
    return softmax(hide((q * scale) @ k.transpose(-2, -1), mask, attn_mask)) @ v


attend.safely = attend_safely  # type: ignore[attr-defined]  # functions take attributes
adapt = with_attend(attend, "eager")
