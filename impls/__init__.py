"""The attention layers and the ways to compute them; knows nothing of how they are measured."""

from torch import nn
from torch.nn.attention import SDPBackend

from impls.attend import eager, flex, manual, online, sdpa
from impls.compiled import compiled
from impls.contract import Adapt, Attend, Implementation, Unsupported, compiling, with_attend
from impls.layers.conv import ConvSelfAttention
from impls.layers.patch import PatchAttention
from impls.layers.self_attention import SelfAttention
from impls.layers.vit import ViTAttention
from impls.resolve import Unresolved, resolve
from impls.whole import mha, stepwise

__all__ = [
    "IMPLEMENTATIONS",
    "LAYERS",
    "Adapt",
    "Attend",
    "ConvSelfAttention",
    "Implementation",
    "Unresolved",
    "Unsupported",
    "build",
    "compiled",
    "compiles",
    "compiling",
    "resolve",
    "with_attend",
]

LAYERS: dict[str, type[nn.Module]] = {
    "vit": ViTAttention,
    "self": SelfAttention,
    "patch": PatchAttention,
    "conv": ConvSelfAttention,
}

IMPLEMENTATIONS: dict[str, Adapt] = {
    "eager": with_attend(eager.attend),
    "manual": with_attend(manual.attend),
    "stepwise": stepwise.adapt,
    "online": with_attend(online.attend),
    "sdpa": with_attend(sdpa.attend),
    "sdpa_math": with_attend(sdpa.pinned(SDPBackend.MATH)),
    "sdpa_flash": with_attend(sdpa.pinned(SDPBackend.FLASH_ATTENTION)),
    "sdpa_efficient": with_attend(sdpa.pinned(SDPBackend.EFFICIENT_ATTENTION)),
    "sdpa_cudnn": with_attend(sdpa.pinned(SDPBackend.CUDNN_ATTENTION)),
    "flex": flex.adapt,
    "compiled_eager": compiled(with_attend(eager.attend)),
    "compiled_sdpa": compiled(with_attend(sdpa.attend)),
    "mha": mha.adapt,
    "mha_weights": mha.adapt_weights,
}


def compiles(name: str) -> bool:
    """Return whether an implementation is meant to be compiled by torch.compile."""
    return bool(getattr(resolve(name, IMPLEMENTATIONS), "compiles", False))


def build(layer: nn.Module, name: str) -> Implementation:
    """Return the implementation `name` of a layer, sharing the layer's parameters.

    `name` is a key of IMPLEMENTATIONS, an entry point of the group `attention_bench.implementations`,
    or `module:attribute` of an adapter of your own.
    Raises `Unsupported` where the implementation can't express the layer, Unresolved for a name that gives no adapter.
    """
    return resolve(name, IMPLEMENTATIONS)(layer)
