"""The layer with each of its steps a labelled stage, for profiles."""

from torch import Tensor, nn
from torch.profiler import record_function

from impls.contract import Implementation, Unsupported
from impls.layers.vit import ViTAttention, merge_heads


def adapt(layer: nn.Module) -> Implementation:
    """Return the layer's function spelled out in stages that a profiler shows by name.

    Raises `Unsupported` for a layer whose steps are not spelled out here.
    """
    if not isinstance(layer, ViTAttention):
        raise Unsupported(f"the steps of {type(layer).__name__} are not spelled out")

    def vit(x: Tensor) -> Tensor:
        return _vit(layer, x)

    return vit


def _vit(layer: ViTAttention, x: Tensor) -> Tensor:
    batch, tokens, _ = x.shape
    with record_function("qkv projection"):
        qkv = layer.qkv(x)  # [B, N, 3·chan]
    with record_function("split heads"):
        qkv = qkv.reshape(batch, tokens, 3, layer.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)  # each [B, H, N, D]
    o = _attend(q, k, v, layer.scale)
    with record_function("merge heads"):
        o = merge_heads(o)  # [B, N, chan]
    with record_function("output projection"):
        y: Tensor = layer.proj(o)
    with record_function("skip"):
        return merge_heads(v) + y


def _attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    with record_function("scale"):
        q = q * scale
    with record_function("scores"):
        scores = q @ k.transpose(-2, -1)  # [B, H, N, N]
    with record_function("softmax"):
        weights = scores.softmax(dim=-1)
    with record_function("weighted values"):
        return weights @ v
