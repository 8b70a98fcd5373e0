"""A copy of eager, the control of a self-check: a measured difference between the two comes from the machine."""

from torch import Tensor

from impls.attend import hide
from impls.modules.core import with_attend


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
    """Return `softmax((q·scale) kᵀ) v` by the same steps as `impls.attend.eager`, in a separate function.

    q, k `[B, H, N, D]`, v `[B, H, N, Dv]`, result `[B, H, N, Dv]`.
    """
    scores = (q * scale) @ k.transpose(-2, -1)  # [B, H, N, N]
    scores = hide(scores, mask)
    scores = scores.softmax(dim=-1)
    return scores @ v


adapt = with_attend(attend)
"""The adapter `impls.control:adapt`; it is not in the catalogue, because it is no competing implementation."""
