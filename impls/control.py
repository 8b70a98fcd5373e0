"""A copy of eager, the control of a self-check: a measured difference between the two comes from the machine."""

from torch import Tensor

from impls.attend import hide, repeated, softmax
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
    """Return `softmax((q·scale) kᵀ) v` by the same steps as `impls.attend.eager`, in a separate function.

    q `[B, H, Nq, D]`, k `[B, H, Nk, D]`, v `[B, H, Nk, Dv]`, result `[B, H, Nq, Dv]`.
    """
    if enable_gqa:
        k, v = repeated(q, k, v)
    scores = (q * scale) @ k.transpose(-2, -1)  # [B, H, Nq, Nk]
    scores = hide(scores, mask, attn_mask)
    scores = scores.softmax(dim=-1) if attn_mask is None else softmax(scores)
    return scores @ v


adapt = with_attend(attend)
"""The adapter `impls.control:adapt`; it is not in the catalogue, because it is no competing implementation."""
