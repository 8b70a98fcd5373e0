"""Cores for packed items: q, k and v `[1, H, T, D]` with the tokens of all items -> o `[1, H, T, D]`.

A token attends to the tokens of its own item; with a causal mask, to itself and earlier ones.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from torch.nn.attention.varlen import varlen_attn

from impls.attend import sdpa
from impls.catalogue import CAUSAL
from impls.contract import Implementation, Unsupported, with_attend
from impls.packing import Packing


def attend_by_item(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, packing: Packing, mask: str | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Return the core's output, computed item by item with `scaled_dot_product_attention`."""
    parts = [
        sdpa.attend(q[:, :, begin:end], k[:, :, begin:end], v[:, :, begin:end], scale, mask=mask, enable_gqa=enable_gqa)
        for begin, end in packing.spans
    ]
    return torch.cat(parts, dim=2)


def attend_nested(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, packing: Packing, mask: str | None = None
) -> Tensor:
    """Return `scaled_dot_product_attention` of nested tensors with the jagged layout.

    q, k and v are copied, because torch takes only contiguous ones. Raises `Unsupported` for a causal mask on a CPU.
    Source: `torch.nested`, PyTorch documentation.
    """
    if mask == CAUSAL and q.device.type == "cpu":
        raise Unsupported("torch computes nested tensors with a causal mask only on a GPU")
    offsets, bounds = packing.made
    qs, ks, vs = (
        torch.nested.nested_tensor_from_jagged(each[0].transpose(0, 1).contiguous(), offsets, **bounds).transpose(1, 2)
        for each in (q, k, v)
    )
    o = F.scaled_dot_product_attention(qs, ks, vs, scale=scale, is_causal=mask is not None)
    return o.transpose(1, 2).values().transpose(0, 1).unsqueeze(0)


def _jagged(packing: Packing, _mask: str) -> tuple[Tensor, dict[str, int]]:
    """Return the offsets in the dtype of nested tensors, and the least and largest length, else computed by torch."""
    return packing.offsets.long(), {"min_seqlen": min(packing.lengths), "max_seqlen": max(packing.lengths)}


attend_nested.apart = _jagged  # type: ignore[attr-defined]  # functions take attributes


def attend_varlen(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, packing: Packing, mask: str | None = None
) -> Tensor:
    """Return torch's `varlen_attn`, which takes packed items like FlashAttention's varlen function.

    Raises `Unsupported` on a CPU, and for dtypes of more than two bytes. Grouped heads are repeated, because torch
    before 2.12 doesn't take them.
    Source: `torch.nn.attention.varlen`, PyTorch documentation.
    """
    _check_varlen(q)
    qs, ks, vs = (each[0].transpose(0, 1) for each in (q, k, v))  # [T, H, D]
    ends, longest, window = packing.offsets, packing.longest, (-1, 0) if mask == CAUSAL else (-1, -1)
    o = varlen_attn(qs, ks, vs, ends, ends, longest, longest, scale=scale, window_size=window)
    assert isinstance(o, Tensor)
    return o.transpose(0, 1).unsqueeze(0)


def _check_varlen(q: Tensor) -> None:
    if q.device.type == "cpu":
        raise Unsupported("torch.nn.attention.varlen runs only on a GPU")
    if q.dtype.itemsize > 2:  # bytes
        raise Unsupported(f"torch.nn.attention.varlen needs bfloat16 or float16, got {q.dtype}")


def adapt_flex(layer: nn.Module) -> Implementation:
    """Return the layer with `flex_attention` and a document mask: a query sees the keys of its own item.

    The block mask is built once per batch, as for all layers of a model.
    Raises `Unsupported` for a layer whose core can't be replaced.
    Source: `torch.nn.attention.flex_attention`, PyTorch documentation.
    """
    compiled = torch.compile(flex_attention, dynamic=False)

    def attend(
        q: Tensor, k: Tensor, v: Tensor, scale: float, *, packing: Packing,
        mask: str | None = None,  # noqa: ARG001 - it is in the block mask
        enable_gqa: bool = False,
    ) -> Tensor:  # fmt: skip
        output: Tensor = compiled(q, k, v, block_mask=packing.made, scale=scale, enable_gqa=enable_gqa)
        return output

    attend.apart = _documents  # type: ignore[attr-defined]  # functions take attributes
    return with_attend(attend)(layer)


def _documents(packing: Packing, mask: str) -> BlockMask:
    """Return the block mask of a packed batch."""
    offsets = packing.offsets
    tokens = sum(packing.lengths)
    of = torch.searchsorted(offsets, torch.arange(tokens, device=offsets.device), right=True)

    def sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return of[query] == of[key]

    def sees_before(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (of[query] == of[key]) & (query >= key)

    chosen = sees_before if mask == CAUSAL else sees
    return create_block_mask(chosen, None, None, tokens, tokens, device=str(offsets.device))


adapt_loop = with_attend(attend_by_item)
adapt_nested = with_attend(attend_nested)
adapt_varlen = with_attend(attend_varlen)
