"""The switches by which libraries choose between `sdpa` and `eager` attention."""

import contextlib
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from bench.modules.graph.tracing import no_fast_path
from bench.modules.wrapper import Wrapper

FUSED_ATTN = "fused_attn"
"""The flag of timm's layers."""

OF_TORCH = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
"""torch's own modules with a fast path, which computes a layer in one operator."""


@dataclass(frozen=True)
class Switch:
    """A library's switch: whether a module has it, and how it is set to `sdpa` or `eager`.

    `name` stands in rows; it is empty if the switch has no `eager`. `lines` set it in a program whose model is `model`.
    """

    name: str
    is_in: Callable[[Wrapper], bool]
    set: Callable[[Wrapper, str], None]
    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _has_flag(module: nn.Module) -> bool:
    return isinstance(getattr(module, FUSED_ATTN, None), bool | int)


def _set_flags(model: Wrapper, way: str) -> None:
    for module in filter(_has_flag, model.inner.modules()):
        module.fused_attn = way == "sdpa"  # type: ignore[assignment]  # a flag of timm's


def configs(module: nn.Module) -> list[Any]:
    """Return the configurations of transformers that a module and its parts hold."""
    held = (getattr(each, "config", None) for each in module.modules())
    return [config for config in held if hasattr(config, "_attn_implementation")]


def _set_configs(model: Wrapper, way: str) -> None:
    for module in model.inner.modules():
        if callable(choose := getattr(module, "set_attn_implementation", None)):
            with contextlib.suppress(ValueError):  # the model has one attention only
                choose(way)
    if way in model.forms:  # a layer of transformers reads the choice from the configuration of its model
        model.args, model.kwargs = model.forms[way]
        for config in configs(model.inner):
            config._attn_implementation = way


def is_torchs_own(model: Wrapper) -> bool:
    """Return whether a module is one of torch's own that have a fast path, or has one inside."""
    return any(isinstance(each, OF_TORCH) for each in model.inner.modules())


def _leave_fast_path(model: Wrapper, _way: str) -> None:
    if is_torchs_own(model):
        model.context = no_fast_path


SWITCHES = (
    Switch(
        FUSED_ATTN,
        lambda model: any(map(_has_flag, model.inner.modules())),
        _set_flags,
        {
            way: (
                "for module in model.modules():",
                '    if hasattr(module, "fused_attn"):',
                f"        module.fused_attn = {way == 'sdpa'}",
            )
            for way in ("sdpa", "eager")
        },
    ),
    Switch(
        "attn_implementation",
        lambda model: bool(model.forms or configs(model.inner)),
        _set_configs,
        {way: (f'model.set_attn_implementation("{way}")',) for way in ("sdpa", "eager")},
    ),
    Switch("", is_torchs_own, _leave_fast_path, {"sdpa": ("torch.backends.mha.set_fastpath_enabled(False)",)}),
)
"""The switches of timm, of transformers, and of torch's own modules, in the order in which they are tried."""


def switch_of(model: Wrapper) -> Switch | None:
    """Return the first switch that a module has; None without one."""
    return next((each for each in SWITCHES if each.is_in(model)), None)


def switched(model: Wrapper, way: str) -> Wrapper:
    """Return a module that shares the weights, in which all switches are set to `sdpa` or `eager`."""
    own = copy.copy(model)
    for each in SWITCHES:
        each.set(own, way)
    return own
