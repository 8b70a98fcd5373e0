"""A copy of eager, which a self-check measures beside it: whatever differs between the two is the machine's doing."""

from torch import Tensor

from impls.attend.causal import hide
from impls.contract import with_attend


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
    """Return what `impls.attend.eager` does, by the same steps in a function of its own.

    q, k `[B, H, N, D]`, v `[B, H, N, Dv]`, result `[B, H, N, Dv]`.
    """
    scores = (q * scale) @ k.transpose(-2, -1)  # [B, H, N, N]
    scores = hide(scores, mask)
    scores = scores.softmax(dim=-1)
    return scores @ v


adapt = with_attend(attend)
"""What `impls.twin:adapt` names; it is in no list, because it competes with nobody."""
