"""The attention layers and their implementations; nothing here depends on `bench`.

`impls.catalogue` imports no torch, so planning and reading results can use it.
The names below are imported at their first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from impls.catalogue import IMPLEMENTATIONS

if TYPE_CHECKING:
    from impls.contract import Adapt, Attend, Implementation, Unresolved, Unsupported, compiling, masked, with_attend
    from impls.layers.attention import Attention
    from impls.layers.conv import ConvSelfAttention
    from impls.layers.core import Core
    from impls.layers.patch import PatchAttention
    from impls.layers.self_attention import SelfAttention
    from impls.layers.vit import ViTAttention
    from impls.lookup import build, compiles, resolve
    from impls.runtimes import Operator, Runtime

__all__ = [
    "IMPLEMENTATIONS", "Adapt", "Attend", "Attention", "ConvSelfAttention", "Core", "Implementation", "Operator",
    "PatchAttention", "Runtime", "SelfAttention", "Unresolved", "Unsupported", "ViTAttention", "build", "compiles",
    "compiling", "masked", "resolve", "with_attend",
]  # fmt: skip

_MODULES = {
    "contract": "Adapt Attend Implementation Unresolved Unsupported compiling masked with_attend",
    "layers.attention": "Attention",
    "layers.conv": "ConvSelfAttention",
    "layers.core": "Core",
    "layers.patch": "PatchAttention",
    "layers.self_attention": "SelfAttention",
    "layers.vit": "ViTAttention",
    "lookup": "build compiles resolve",
    "runtimes": "Operator Runtime",
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
