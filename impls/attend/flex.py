"""FlexAttention, compiled as it is meant to be used; the rest of the layer stays eager."""

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

from impls.contract import Implementation, compiling, with_attend


@compiling
def adapt(layer: nn.Module) -> Implementation:
    """Return the layer with `flex_attention(q, k, v, scale=scale)`, without a mask or a score modification.

    Raises `Unsupported` for a layer whose core can't be replaced.
    Source: `torch.nn.attention.flex_attention`, PyTorch documentation.
    """
    compiled = torch.compile(flex_attention, dynamic=False)

    def attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        output: Tensor = compiled(q, k, v, scale=scale)
        return output

    return with_attend(attend)(layer)
