"""The attention layers and their implementations; no module here depends on the measurement.

`impls.catalogue` and `impls.table` import no torch, so planning and reading results can use them.
The names below are imported at their first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from impls.catalogue import IMPLEMENTATIONS

if TYPE_CHECKING:
    from impls.contract import Adapt, Attend, Implementation, Unresolved, Unsupported, compiling, masked, with_attend
    from impls.layers.conv import ConvSelfAttention
    from impls.layers.patch import PatchAttention
    from impls.layers.self_attention import SelfAttention
    from impls.layers.vit import ViTAttention
    from impls.lookup import activate, build, compiles, resolve, versions
    from impls.runtimes import Operator, Runtime
    from impls.torch_compile import compiled

_HOMES = {
    "Adapt": "impls.contract",
    "Attend": "impls.contract",
    "ConvSelfAttention": "impls.layers.conv",
    "Implementation": "impls.contract",
    "Operator": "impls.runtimes",
    "PatchAttention": "impls.layers.patch",
    "Runtime": "impls.runtimes",
    "SelfAttention": "impls.layers.self_attention",
    "Unresolved": "impls.contract",
    "Unsupported": "impls.contract",
    "ViTAttention": "impls.layers.vit",
    "activate": "impls.lookup",
    "build": "impls.lookup",
    "compiled": "impls.torch_compile",
    "compiles": "impls.lookup",
    "compiling": "impls.contract",
    "masked": "impls.contract",
    "resolve": "impls.lookup",
    "versions": "impls.lookup",
    "with_attend": "impls.contract",
}

__all__ = [
    "IMPLEMENTATIONS",
    "Adapt",
    "Attend",
    "ConvSelfAttention",
    "Implementation",
    "Operator",
    "PatchAttention",
    "Runtime",
    "SelfAttention",
    "Unresolved",
    "Unsupported",
    "ViTAttention",
    "activate",
    "build",
    "compiled",
    "compiles",
    "compiling",
    "masked",
    "resolve",
    "versions",
    "with_attend",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
