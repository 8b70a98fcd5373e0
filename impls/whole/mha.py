"""torch.nn.MultiheadAttention with the layer's weights."""

from typing import cast

import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls.contract import Implementation, Unsupported
from impls.layers.vit import ViTAttention


def adapt(layer: nn.Module) -> Implementation:
    """Return the layer computed by `nn.MultiheadAttention`, which holds the layer's own parameters.

    MultiheadAttention does not give out its values, so the adapter projects v a second time for the skip:
    2·B·N·dim·chan FLOPs more than the layer needs.
    Where the layer has no QKV bias the module gets a zero one, because its fast path asks for a bias.
    Raises `Unsupported` where the module can't express the layer.
    """
    if not isinstance(layer, ViTAttention):
        raise Unsupported(f"the adapter to nn.MultiheadAttention expects ViTAttention, got {type(layer).__name__}")
    dim, chan = layer.qkv.in_features, layer.proj.in_features
    if dim != chan:
        raise Unsupported(f"nn.MultiheadAttention needs token_len = channels, got {dim} and {chan}")
    if layer.scale != (chan // layer.num_heads) ** -0.5:
        raise Unsupported(f"nn.MultiheadAttention has the scale D**-0.5 built in, got {layer.scale}")
    mha = nn.MultiheadAttention(
        chan,
        layer.num_heads,
        batch_first=True,
        device=layer.proj.weight.device,
        dtype=layer.proj.weight.dtype,
    )
    mha.in_proj_weight = cast(nn.Parameter, layer.qkv.weight)
    if layer.qkv.bias is None:
        mha.in_proj_bias.requires_grad_(False).zero_()
    else:
        mha.in_proj_bias = layer.qkv.bias
    mha.out_proj.weight = layer.proj.weight
    mha.out_proj.bias = layer.proj.bias
    mha.train(layer.training)

    def vit(x: Tensor) -> Tensor:
        bias = None if layer.qkv.bias is None else layer.qkv.bias[2 * chan :]
        v = F.linear(x, layer.qkv.weight[2 * chan :], bias)  # [B, N, chan], heads already merged
        y: Tensor = mha(x, x, x, need_weights=False)[0]
        return v + y

    return vit
