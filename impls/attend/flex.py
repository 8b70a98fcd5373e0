"""FlexAttention, compiled as its documentation says; the rest of the layer stays eager."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from impls.contract import Implementation, Unsupported, with_attend


def adapt(layer: nn.Module) -> Implementation:
    """Return the layer with `flex_attention(q, k, v, scale=scale)`, and a block mask if the layer is causal.

    The block mask is made once for each number of tokens, in the first call. An `attn_mask` changes the scores; another
    mask of the same shape needs no recompilation.
    Raises `Unsupported` for a layer whose core can't be replaced.
    Source: `torch.nn.attention.flex_attention`, PyTorch documentation.
    """
    compiled = torch.compile(flex_attention, dynamic=False)

    def attend(
        q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None, attn_mask: Tensor | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:  # fmt: skip
        queries, keys = q.shape[-2], k.shape[-2]
        block_mask = None if mask is None else _causal(queries, keys, str(q.device))
        score_mod = None if attn_mask is None else _masking(attn_mask.expand(*q.shape[:-1], keys))
        output: Tensor = compiled(
            q, k, v, score_mod=score_mod, block_mask=block_mask, scale=scale, enable_gqa=enable_gqa
        )
        return output

    return with_attend(attend)(layer)


@cache
def _causal(queries: int, keys: int, device: str) -> BlockMask:
    return create_block_mask(_sees, None, None, queries, keys, device=device)


def _sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return query >= key


def _masking(attn_mask: Tensor) -> Callable[..., Tensor]:
    """Return the `score_mod` that applies a mask `[B, H, Nq, Nk]`: boolean, True at visible keys, or floating.

    Raises `Unsupported` if the mask needs a gradient on the CPU, where flex_attention has none.
    """
    if attn_mask.device.type == "cpu" and attn_mask.requires_grad and torch.is_grad_enabled():
        raise Unsupported("FlexAttention does not support backward on CPU, but attn_mask requires a gradient")

    def hide(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return torch.where(attn_mask[batch, head, query, key], score, float("-inf"))

    def add(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return score + attn_mask[batch, head, query, key]

    return hide if attn_mask.dtype == torch.bool else add
