"""torch.nn.MultiheadAttention with the layer's weights."""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls.attend import hidden
from impls.contract import NO_MASK, Implementation, Unsupported, mask_of
from impls.layers.patch import PatchAttention
from impls.layers.vit import ViTAttention

Masking = Callable[[Tensor], dict[str, Any]]
"""Returns the keyword arguments that mask attention over tokens `[B, N, C]`; empty if the layer has no mask."""


def adapt(layer: nn.Module) -> Implementation:
    """Return the layer computed by `nn.MultiheadAttention` without the attention weights (`need_weights=False`).

    In eval mode without gradients the module takes its fast path, one operator for the whole module.
    Raises `Unsupported` if the module can't express the layer.
    """
    return _adapt(layer, need_weights=False)


def adapt_weights(layer: nn.Module) -> Implementation:
    """Return the layer computed by `nn.MultiheadAttention` with the attention weights, as its default is.

    The weights, averaged over heads, are computed and not used; computing them rules out fused attention.
    Raises `Unsupported` if the module can't express the layer.
    """
    return _adapt(layer, need_weights=True)


def _adapt(layer: nn.Module, *, need_weights: bool) -> Implementation:
    if isinstance(layer, ViTAttention):
        return _vit(layer, need_weights)
    if isinstance(layer, PatchAttention):
        return _patch(layer, need_weights)
    raise Unsupported(f"no adapter from {type(layer).__name__} to nn.MultiheadAttention")


def _vit(layer: ViTAttention, need_weights: bool) -> Implementation:
    """Return the layer computed by a module that holds the layer's own parameters.

    MultiheadAttention does not return its values, so the adapter projects v a second time for the skip:
    2·B·N·dim·chan FLOPs more than the layer needs.
    If the layer has no QKV bias, the module gets a zero bias, because its fast path requires one.
    """
    dim, chan = layer.qkv.in_features, layer.proj.in_features
    if dim != chan:
        raise Unsupported(f"nn.MultiheadAttention needs token_len = channels, got {dim} and {chan}")
    if layer.scale != (chan // layer.num_heads) ** -0.5:
        raise Unsupported(f"nn.MultiheadAttention has the scale D**-0.5 built in, got {layer.scale}")
    mha, mask = _module(layer.proj, layer.num_heads), _masking(layer)
    mha.in_proj_weight = cast(nn.Parameter, layer.qkv.weight)
    if layer.qkv.bias is None:
        mha.in_proj_bias.requires_grad_(False).zero_()
    else:
        mha.in_proj_bias = layer.qkv.bias

    def vit(x: Tensor) -> Tensor:
        bias = None if layer.qkv.bias is None else layer.qkv.bias[2 * chan :]
        v = F.linear(x, layer.qkv.weight[2 * chan :], bias)  # [B, N, chan], heads already merged
        y: Tensor = mha(x, x, x, need_weights=need_weights, **mask(x))[0]
        return v + y

    return vit


def _patch(layer: PatchAttention, need_weights: bool) -> Implementation:
    """Return the layer computed by a module in eval mode, and by the module's underlying function in training mode.

    The module needs the three projections as one weight. In training this would be a copy in every call, so there
    the function gets them separately, as it does for a module whose keys have another width.
    In eval mode the single weight is a copy that is made here; later changes of the layer don't reach it.
    """
    projections = (layer.to_q, layer.to_k, layer.to_v)
    mask = _masking(layer)
    if layer.training:
        return lambda x: _functional(layer, layer.embed(x), need_weights, mask)
    mha = _module(layer.to_out, layer.heads)
    with torch.no_grad():
        mha.in_proj_weight = nn.Parameter(torch.cat([projection.weight for projection in projections]))
        mha.in_proj_bias = nn.Parameter(torch.cat([projection.bias for projection in projections]))

    def patch(x: Tensor) -> Tensor:
        tokens = layer.embed(x)
        y: Tensor = mha(tokens, tokens, tokens, need_weights=need_weights, **mask(tokens))[0]
        return y

    return patch


def _functional(layer: PatchAttention, tokens: Tensor, need_weights: bool, mask: Masking) -> Tensor:
    masking = mask(tokens)
    tokens = tokens.transpose(0, 1)  # [N, B, E], as the function requires
    y: Tensor = F.multi_head_attention_forward(
        tokens,
        tokens,
        tokens,
        embed_dim_to_check=tokens.shape[-1],
        num_heads=layer.heads,
        in_proj_weight=None,
        in_proj_bias=torch.cat([layer.to_q.bias, layer.to_k.bias, layer.to_v.bias]),
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=layer.to_out.weight,
        out_proj_bias=layer.to_out.bias,
        need_weights=need_weights,
        **masking,
        use_separate_proj_weight=True,
        q_proj_weight=layer.to_q.weight,
        k_proj_weight=layer.to_k.weight,
        v_proj_weight=layer.to_v.weight,
    )[0]
    return y.transpose(0, 1)


def _masking(layer: nn.Module) -> Masking:
    if mask_of(layer) == NO_MASK:
        return lambda _tokens: {}

    @cache
    def of(tokens: int, device: torch.device) -> dict[str, Any]:
        return {"attn_mask": hidden(tokens, tokens, device), "is_causal": True}

    return lambda tokens: of(tokens.shape[1], tokens.device)


def _module(output: nn.Linear, heads: int) -> nn.MultiheadAttention:
    """Return a module of an output projection's width and dtype that shares it; its input projections are unset."""
    weight = output.weight
    mha = nn.MultiheadAttention(output.in_features, heads, batch_first=True, device=weight.device, dtype=weight.dtype)
    mha.out_proj.weight = weight
    mha.out_proj.bias = output.bias
    mha.train(output.training)
    return mha
