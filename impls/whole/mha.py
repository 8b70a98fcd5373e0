"""torch.nn.MultiheadAttention with the layer's weights."""

from functools import cache
from typing import Any, cast

import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls.attend import hidden
from impls.catalogue import CAUSAL, FIXED
from impls.contract import Implementation, Unsupported, mask_of
from impls.layers.attention import Attention
from impls.layers.vit import ViTAttention

FEATURES = "context, bias, norms of queries and keys, rotary embedding, fewer heads of keys or windows"
"""The features that a layer may not have, for messages."""


def adapt(layer: nn.Module) -> Implementation:
    """Return the layer computed by `nn.MultiheadAttention` without the attention weights (`need_weights=False`).

    In eval mode without gradients the module takes its fast path, one operator for the whole module.
    Raises `Unsupported` if the module can't express the layer.
    """
    return _adapt(layer, need_weights=False)


def adapt_weights(layer: nn.Module) -> Implementation:
    """Return the layer computed by `nn.MultiheadAttention` with the attention weights, which is its default.

    The weights, averaged over heads, are computed and not used; computing them rules out fused attention.
    Raises `Unsupported` if the module can't express the layer.
    """
    return _adapt(layer, need_weights=True)


def _adapt(layer: nn.Module, *, need_weights: bool) -> Implementation:
    """Return the layer computed by a module that holds the layer's own parameters.

    MultiheadAttention does not return its values, so for the skip of `ViTAttention` v is projected a second time:
    2·B·N·dim·chan FLOPs more than the layer needs.
    """
    if not isinstance(layer, ViTAttention | Attention):
        raise Unsupported(f"no adapter from {type(layer).__name__} to nn.MultiheadAttention")
    if isinstance(layer, Attention) and not _is_plain(layer):
        raise Unsupported(f"nn.MultiheadAttention is used only for layers without {FEATURES}")
    chan = layer.proj.in_features
    if layer.qkv.in_features != chan:
        raise Unsupported(f"nn.MultiheadAttention needs token_len = channels, got {layer.qkv.in_features} and {chan}")
    if layer.scale != (chan // layer.num_heads) ** -0.5:
        raise Unsupported(f"nn.MultiheadAttention has the scale D**-0.5 built in, got {layer.scale}")
    mha, causal = _module(layer), cache(hidden)
    is_causal, has_skip = mask_of(layer) == CAUSAL, isinstance(layer, ViTAttention)
    is_padded = layer.lengths != FIXED

    def whole(x: Tensor, *padding: Tensor) -> Tensor:
        tokens = x.shape[1]
        masks: dict[str, Any] = {"key_padding_mask": padding[0] if is_padded else None}
        if is_causal:
            masks |= {"attn_mask": causal(tokens, tokens, x.device), "is_causal": True}
        y: Tensor = mha(x, x, x, need_weights=need_weights, **masks)[0]
        if not has_skip:
            return y
        bias = None if layer.qkv.bias is None else layer.qkv.bias[2 * chan :]
        return F.linear(x, layer.qkv.weight[2 * chan :], bias) + y  # [B, N, chan], heads already merged

    return whole


def _is_plain(layer: Attention) -> bool:
    has_norm = not isinstance(layer.q_norm, nn.Identity)
    is_grouped, has_places = layer.num_kv_heads < layer.num_heads, layer.rope != "none" or layer.attn_bias != "none"
    return hasattr(layer, "qkv") and layer.window_size is None and not (has_norm or is_grouped or has_places)


def _module(layer: ViTAttention | Attention) -> nn.MultiheadAttention:
    """Return a module with the layer's parameters; a missing QKV bias becomes zeros, which the fast path needs."""
    weight = layer.proj.weight
    width = layer.proj.in_features
    mha = nn.MultiheadAttention(width, layer.num_heads, batch_first=True, device=weight.device, dtype=weight.dtype)
    mha.in_proj_weight = cast(nn.Parameter, layer.qkv.weight)
    if layer.qkv.bias is None:
        mha.in_proj_bias.requires_grad_(False).zero_()
    else:
        mha.in_proj_bias = layer.qkv.bias
    mha.out_proj.weight, mha.out_proj.bias = weight, layer.proj.bias
    mha.train(layer.training)
    return mha
