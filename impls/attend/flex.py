"""FlexAttention, compiled as it is meant to be used; the rest of the layer stays eager."""

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from impls.contract import compiling, with_attend

_compiled = torch.compile(flex_attention, dynamic=False)


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return `flex_attention(q, k, v, scale=scale)` without a mask or a score modification.

    q, k `[B, H, N, D]`, v `[B, H, N, Dv]`, result `[B, H, N, Dv]`.
    Source: `torch.nn.attention.flex_attention`, PyTorch documentation.
    """
    output: Tensor = _compiled(q, k, v, scale=scale)
    return output


adapt = compiling(with_attend(attend))
