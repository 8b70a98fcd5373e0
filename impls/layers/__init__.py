"""The layers, each written once and plainly: the reference for every implementation.

`construct` makes a layer from the columns of a point, by the same rule for our layers and your own. `split_heads` and
`merge_heads` convert between heads that are side by side in the channels and heads as a separate dimension.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from torch import Tensor, nn

from impls.catalogue import is_model
from impls.contract import NO_MASK, Unresolved, Unsupported, imported, mask_of
from impls.models.sources import make as make_model

Columns = Mapping[str, Any]

ALIASES: Mapping[str, str] = {
    "dim": "token_len",
    "chan": "channels",
    "embed_dim": "channels",
    "heads": "num_heads",
    "dim_k": "key_channels",
    "dim_v": "channels",
}
"""Other names that a constructor's parameters may have for columns of a point."""

DERIVED: Mapping[str, Callable[[Columns], Any]] = {
    "in_channels": lambda columns: columns["token_len"] // (columns["patch_size"] or 1) ** 2,
}
"""Parameters whose values follow from columns; `in_channels` are the channels of an image."""

VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def construct(layer: str, columns: Columns, required: Collection[str] = ()) -> nn.Module:
    """Return a layer made from those columns of a point that its constructor's signature names.

    `layer` is `module:attribute` of a class or function; `required` are columns that its signature must name.
    Raises Unresolved if the layer can't be imported, has a parameter that is no column, or breaks the contract;
    `Unsupported` if its signature doesn't name a required column.
    """
    if is_model(layer):
        return make_model(layer)
    make = _made_by(layer)
    arguments = _arguments(layer, make, columns)
    used_columns = {ALIASES.get(name, name) for name in arguments}
    if missing := [f"{name} = {columns[name]}" for name in required if name not in used_columns]:
        raise Unsupported(f"layer {layer!r} does not take {' and '.join(missing)}, which the point asks for")
    module = make(**arguments)
    mask = columns.get("mask", NO_MASK)
    if not isinstance(module, nn.Module):
        raise Unresolved(f"layer {layer!r} must make a torch.nn.Module, got {type(module).__name__}")
    if hasattr(module, "attend") and mask_of(module) != mask:
        raise Unresolved(f"layer {layer!r} must keep its mask as self.mask = {mask!r}, got {mask_of(module)!r}")
    return module


def statement(layer: str, module: nn.Module, name: str) -> Callable[[Any], Any] | None:
    """Return the function of a point with which a layer states its FLOPs or input shape; None if it has none.

    It is a method of the layer, or an attribute of the function that makes the layer.
    """
    for owner in (module,) if is_model(layer) else (module, _made_by(layer)):
        function = getattr(owner, name, None)
        if callable(function):
            return cast(Callable[[Any], Any], function)
    return None


def _made_by(layer: str) -> Callable[..., Any]:
    return imported(layer, f"layer {layer!r}")


def _arguments(layer: str, make: Callable[..., Any], columns: Columns) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(make).parameters.items():
        if name in columns:
            arguments[name] = columns[name]
        elif name in ALIASES:
            arguments[name] = columns[ALIASES[name]]
        elif name in DERIVED:
            arguments[name] = DERIVED[name](columns)
        elif parameter.default is parameter.empty and parameter.kind not in VARIADIC:
            names = ", ".join([*columns, *ALIASES, *DERIVED])
            raise Unresolved(f"layer {layer!r} asks for {name!r}, which is no column; expected some of {names}")
    return arguments


def split_heads(tokens: Tensor, heads: int) -> Tensor:
    """Return `[B, N, H·D]` as `[B, H, N, D]`."""
    parts: Tensor = tokens.unflatten(2, (heads, -1))  # [B, N, H, D]
    return parts.transpose(1, 2)


def merge_heads(heads: Tensor) -> Tensor:
    """Return `[B, H, N, D]` as `[B, N, H·D]`."""
    return heads.transpose(1, 2).flatten(2)
