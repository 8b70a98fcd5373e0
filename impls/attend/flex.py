"""FlexAttention, compiled as its documentation says; the rest of the layer stays eager."""

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from impls.contract import Implementation, compiling
from impls.modules.core import with_attend


@compiling
def adapt(layer: nn.Module) -> Implementation:
    """Return the layer with `flex_attention(q, k, v, scale=scale)`, and a block mask if the layer is causal.

    The block mask is made once for each number of tokens, in the first call.
    Raises `Unsupported` for a layer whose core can't be replaced.
    Source: `torch.nn.attention.flex_attention`, PyTorch documentation.
    """
    compiled = torch.compile(flex_attention, dynamic=False)

    def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
        block_mask = None if mask is None else _causal(q.shape[-2], str(q.device))
        output: Tensor = compiled(q, k, v, scale=scale, block_mask=block_mask)
        return output

    return with_attend(attend)(layer)


@cache
def _causal(tokens: int, device: str) -> BlockMask:
    return create_block_mask(_sees, None, None, tokens, tokens, device=device)


def _sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return query >= key
