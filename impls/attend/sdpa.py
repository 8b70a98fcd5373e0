"""PyTorch's scaled_dot_product_attention, with the backend that PyTorch chooses."""

import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return `F.scaled_dot_product_attention(q, k, v, scale=scale)`.

    q, k `[B, H, N, D]`, v `[B, H, N, Dv]`, result `[B, H, N, Dv]`.
    Source: `torch.nn.functional.scaled_dot_product_attention`, PyTorch documentation.
    """
    return F.scaled_dot_product_attention(q, k, v, scale=scale)
