"""torch.nn.MultiheadAttention with the layer's weights."""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls.attend import hidden
from impls.catalogue import CAUSAL, FIXED
from impls.contract import Implementation, Unsupported, mask_of
from impls.layers.attention import Attention
from impls.layers.patch import PatchAttention
from impls.layers.vit import ViTAttention
from impls.packing import with_padding

Masks = Callable[..., dict[str, Any]]
"""Returns the keyword arguments of a layer's masks for tokens `[B, N, C]`, a context, and the layer's other inputs."""


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
    if isinstance(layer, Attention):
        return _attention(layer, need_weights)
    raise Unsupported(f"no adapter from {type(layer).__name__} to nn.MultiheadAttention")


def _vit(layer: ViTAttention, need_weights: bool) -> Implementation:
    """Return the layer computed by a module that holds the layer's own parameters.

    MultiheadAttention does not return its values, so the adapter projects v a second time for the skip:
    2·B·N·dim·chan FLOPs more than the layer needs.
    If the layer has no QKV bias, the module gets a zero bias, because its fast path requires one.
    """
    _check(layer.qkv.in_features, layer)
    chan, mha, masks = layer.proj.in_features, _packed(layer), _masks(layer)

    def vit(x: Tensor, *padding: Tensor) -> Tensor:
        bias = None if layer.qkv.bias is None else layer.qkv.bias[2 * chan :]
        v = F.linear(x, layer.qkv.weight[2 * chan :], bias)  # [B, N, chan], heads already merged
        y: Tensor = mha(x, x, x, need_weights=need_weights, **masks(x, x, *padding))[0]
        return v + y

    return vit


def _check(dim: int, layer: ViTAttention | Attention) -> None:
    """Raise Unsupported for a width of the tokens or a scale that the module can't have."""
    chan = layer.proj.in_features
    if dim != chan:
        raise Unsupported(f"nn.MultiheadAttention needs token_len = channels, got {dim} and {chan}")
    if layer.scale != (chan // layer.num_heads) ** -0.5:
        raise Unsupported(f"nn.MultiheadAttention has the scale D**-0.5 built in, got {layer.scale}")


def _packed(layer: ViTAttention | Attention) -> nn.MultiheadAttention:
    """Return a module that holds the parameters of a layer with one projection; without a bias it gets a zero one."""
    mha = _module(layer.proj, layer.num_heads)
    mha.in_proj_weight = cast(nn.Parameter, layer.qkv.weight)
    if layer.qkv.bias is None:
        mha.in_proj_bias.requires_grad_(False).zero_()
    else:
        mha.in_proj_bias = layer.qkv.bias
    return mha


def _attention(layer: Attention, need_weights: bool) -> Implementation:
    """Return the layer computed by a module with its parameters, or by the module's function if it has a context.

    With a context the module has no fast path, and it would need copies of the weights.
    """
    more = {
        "fewer heads of keys": layer.num_kv_heads < layer.num_heads,
        "norm of queries and keys": not isinstance(layer.q_norm, nn.Identity),
        "rotary embedding": layer.rope != "none",
        "windows": layer.window_size is not None,
    }
    for each in (name for name, is_there in more.items() if is_there):
        raise Unsupported(f"nn.MultiheadAttention has no {each}")
    has_context = not hasattr(layer, "qkv")
    _check((layer.q if has_context else layer.qkv).in_features, layer)
    masks = _masks(layer)
    if has_context:
        biases = () if layer.q.bias is None else (layer.q.bias, layer.kv.bias)

        def cross(x: Tensor, context: Tensor, *others: Tensor) -> Tensor:
            weights = (layer.q.weight, *layer.kv.weight.chunk(2))
            given = masks(x, context, *others)
            return _functional(x, context, weights, biases, layer.proj, layer.num_heads, need_weights, given)

        return cross
    mha = _packed(layer)

    def attention(x: Tensor, *others: Tensor) -> Tensor:
        y: Tensor = mha(x, x, x, need_weights=need_weights, **masks(x, x, *others))[0]
        return y

    return attention


def _patch(layer: PatchAttention, need_weights: bool) -> Implementation:
    """Return the layer computed by a module in eval mode, and by the module's underlying function in training mode.

    The module needs the three projections as one weight. In training this would be a copy in every call, so there
    the function gets them separately, as it does for a module whose keys have another width.
    In eval mode the single weight is a copy that is made here; later changes of the layer don't reach it.
    """
    projections = (layer.to_q, layer.to_k, layer.to_v)
    masks = _masks(layer)
    if layer.training:
        weights = tuple(projection.weight for projection in projections)
        biases = tuple(projection.bias for projection in projections)

        def trained(x: Tensor) -> Tensor:
            tokens = layer.embed(x)
            given = masks(tokens, tokens)
            return _functional(tokens, tokens, weights, biases, layer.to_out, layer.heads, need_weights, given)

        return trained
    mha = _module(layer.to_out, layer.heads)
    with torch.no_grad():
        mha.in_proj_weight = nn.Parameter(torch.cat([projection.weight for projection in projections]))
        mha.in_proj_bias = nn.Parameter(torch.cat([projection.bias for projection in projections]))

    def patch(x: Tensor) -> Tensor:
        tokens = layer.embed(x)
        y: Tensor = mha(tokens, tokens, tokens, need_weights=need_weights, **masks(tokens, tokens))[0]
        return y

    return patch


def _functional(
    x: Tensor,
    context: Tensor,
    weights: tuple[Tensor, ...],
    biases: tuple[Tensor, ...],
    output: nn.Linear,
    heads: int,
    need_weights: bool,
    masks: dict[str, Any],
) -> Tensor:
    """Return attention by the module's function, with the weights of q, k and v, their biases and masks."""
    x, context = x.transpose(0, 1), context.transpose(0, 1)  # [N, B, E], as the function requires
    y: Tensor = F.multi_head_attention_forward(
        x,
        context,
        context,
        embed_dim_to_check=x.shape[-1],
        num_heads=heads,
        in_proj_weight=None,
        in_proj_bias=torch.cat(biases) if biases else None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=output.weight,
        out_proj_bias=output.bias,
        need_weights=need_weights,
        **masks,
        use_separate_proj_weight=True,
        q_proj_weight=weights[0],
        k_proj_weight=weights[1],
        v_proj_weight=weights[2],
    )[0]
    return y.transpose(0, 1)


def _masks(layer: nn.Module) -> Masks:
    """Return what gives a layer's masks; a bias becomes a mask `[B·H, N, N]`, a copy for each item."""
    mask, causal = mask_of(layer), cache(hidden)
    is_padded = getattr(layer, "lengths", FIXED) != FIXED

    def masks(x: Tensor, context: Tensor, *others: Tensor) -> dict[str, Any]:
        bias = layer.bias() if isinstance(layer, Attention) else None
        padding = others[-1] if is_padded else None
        unseen = causal(x.shape[1], context.shape[1], x.device) if mask == CAUSAL else None
        if bias is None:
            return {"key_padding_mask": padding, **({} if unseen is None else {"attn_mask": unseen, "is_causal": True})}
        if unseen is not None:
            bias = bias.masked_fill(unseen, float("-inf"))
        if padding is not None:
            bias = with_padding(bias, padding)
        return {"attn_mask": bias.expand(len(x), -1, -1, -1).flatten(0, 1)}

    return masks


def _module(output: nn.Linear, heads: int) -> nn.MultiheadAttention:
    """Return a module of an output projection's width and dtype that shares it; its input projections are unset."""
    weight = output.weight
    mha = nn.MultiheadAttention(output.in_features, heads, batch_first=True, device=weight.device, dtype=weight.dtype)
    mha.out_proj.weight = weight
    mha.out_proj.bias = output.bias
    mha.train(output.training)
    return mha
