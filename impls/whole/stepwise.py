"""The layers with every step as a labelled stage, for profiles."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.profiler import record_function

from impls.attend import hide
from impls.catalogue import CAUSAL, FIXED
from impls.contract import Implementation, Unsupported, repeated
from impls.layers import merge_heads, split_heads
from impls.layers.attention import Attention, rotated, undone, windows
from impls.layers.conv import ConvSelfAttention, as_maps, as_tokens
from impls.layers.core import Core
from impls.layers.patch import PatchAttention
from impls.layers.self_attention import SelfAttention
from impls.layers.vit import ViTAttention

Layer = ViTAttention | SelfAttention | PatchAttention | ConvSelfAttention | Attention | Core


def adapt(layer: nn.Module) -> Implementation:
    """Return the layer's function, written as stages that a profiler shows by name.

    Raises `Unsupported` for a layer whose steps are not written here.
    """
    for kind, steps in STEPS.items():
        if isinstance(layer, kind):
            return lambda *xs: steps(layer, *xs)
    raise Unsupported(f"the steps of {type(layer).__name__} are not spelled out")


def _vit(layer: ViTAttention, x: Tensor, *padding: Tensor) -> Tensor:
    batch, tokens, _ = x.shape
    with record_function("qkv projection"):
        qkv = layer.qkv(x)  # [B, N, 3·chan]
    with record_function("split heads"):
        qkv = qkv.reshape(batch, tokens, 3, layer.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)  # each [B, H, N, D]
    o = _attend(layer, q, k, v, *padding)
    with record_function("merge heads"):
        o = merge_heads(o)  # [B, N, chan]
    with record_function("output projection"):
        y: Tensor = layer.proj(o)
    with record_function("skip"):
        return merge_heads(v) + y


def _self(layer: SelfAttention, x: Tensor) -> Tensor:
    with record_function("qkv projection"):
        q, k, v = layer.query(x), layer.key(x), layer.value(x)
    with record_function("split heads"):
        q, k, v = (tokens.unsqueeze(1) for tokens in (q, k, v))  # each [B, 1, N, D]
    o = _attend(layer, q, k, v)
    with record_function("merge heads"):
        return o.squeeze(1)  # [B, N, dim_v]


def _patch(layer: PatchAttention, x: Tensor) -> Tensor:
    with record_function("patch embedding"):
        tokens = layer.embed(x)  # [B, N, E]
    with record_function("qkv projection"):
        q, k, v = layer.to_q(tokens), layer.to_k(tokens), layer.to_v(tokens)
    with record_function("split heads"):
        q, k, v = (split_heads(projected, layer.heads) for projected in (q, k, v))  # each [B, H, N, D]
    o = _attend(layer, q, k, v)
    with record_function("merge heads"):
        o = merge_heads(o)  # [B, N, E]
    with record_function("output projection"):
        y: Tensor = layer.to_out(o)
        return y


def _conv(layer: ConvSelfAttention, x: Tensor) -> Tensor:
    with record_function("qkv projection"):
        q, k, v = layer.q(x), layer.k(x), layer.v(x)  # [B, D, height, width]
    with record_function("split heads"):
        q, k, v = as_tokens(q), as_tokens(k), as_tokens(v)  # [B, 1, N, D]
    o = _attend(layer, q, k, v)
    with record_function("merge heads"):
        maps = as_maps(o, x)  # [B, C, height, width]
    with record_function("skip"):
        return layer.gamma * maps + x


def _attention(layer: Attention, x: Tensor, *others: Tensor) -> Tensor:
    tokens = x.shape[1]
    if layer.window_size is not None:
        with record_function("windows"):
            x = windows(x, layer.window_size)  # [B · windows, window_size², dim]
    heads, kv_heads = layer.num_heads, layer.num_kv_heads
    if hasattr(layer, "qkv"):
        with record_function("qkv projection"):
            qkv = layer.qkv(x)  # [B, N, (H + 2·Hkv)·D]
        with record_function("split heads"):
            q, k, v = split_heads(qkv, heads + 2 * kv_heads).split([heads, kv_heads, kv_heads], dim=1)
    else:
        with record_function("q projection"):
            q = layer.q(x)  # [B, N, chan]
        with record_function("kv projection"):
            kv = layer.kv(others[0])  # [B, M, 2·Hkv·D]
        with record_function("split heads"):
            q = split_heads(q, heads)  # [B, H, N, D]
            k, v = split_heads(kv, 2 * kv_heads).chunk(2, dim=1)  # each [B, Hkv, M, D]
    if not isinstance(layer.q_norm, nn.Identity):
        with record_function("qk norm"):
            q, k = layer.q_norm(q), layer.k_norm(k)
    if layer.rope != "none":
        with record_function("rotary"):
            q, k = rotated(q, layer.sin, layer.cos), rotated(k, layer.sin, layer.cos)
    o = _attend(layer, q, k, v, *others if layer.lengths != FIXED else ())
    with record_function("merge heads"):
        o = merge_heads(o)  # [B, N, chan]
    with record_function("output projection"):
        y: Tensor = layer.proj(o)
    if layer.window_size is None:
        return y
    with record_function("undo windows"):
        return undone(y, layer.window_size, tokens)


def _attend(layer: Layer, q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None = None) -> Tensor:
    if k.shape[1] < q.shape[1]:
        with record_function("repeat heads"):
            k, v = repeated(q, k, v)  # each [B, H, M, D]
    with record_function("scale"):
        q = q * layer.scale
    with record_function("scores"):
        scores = q @ k.transpose(-2, -1)  # [B, H, N, M]
    if isinstance(layer, Attention | Core) and layer.attn_bias != "none":
        with record_function("bias"):
            bias = layer.bias() if isinstance(layer, Attention) else layer.bias
            assert bias is not None
            scores = scores + bias
    if padding is not None or layer.mask == CAUSAL:
        with record_function("mask"):
            if padding is not None:
                scores = scores.masked_fill(padding[:, None, None], float("-inf"))
            if layer.mask == CAUSAL:
                scores = hide(scores, layer.mask)
    with record_function("softmax"):
        weights = scores.softmax(dim=-1)
    with record_function("weighted values"):
        return weights @ v


STEPS: dict[type[nn.Module], Callable[..., Tensor]] = {
    ViTAttention: _vit,
    SelfAttention: _self,
    PatchAttention: _patch,
    ConvSelfAttention: _conv,
    Attention: _attention,
    Core: _attend,
}
