"""The layers, each written once and plainly: the reference that every implementation must equal.

`construct` makes a layer from the columns of a point; a layer of your own meets the same rule as ours.
"""

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from torch import nn

Columns = Mapping[str, Any]

ALIASES: Mapping[str, Callable[[Columns], Any]] = {
    "dim": lambda columns: columns["token_len"],
    "chan": lambda columns: columns["channels"],
    "embed_dim": lambda columns: columns["channels"],
    "heads": lambda columns: columns["num_heads"],
    "dim_k": lambda columns: columns["key_channels"],
    "dim_v": lambda columns: columns["channels"],
    "in_channels": lambda columns: columns["token_len"] // (columns["patch_size"] or 1) ** 2,
}
"""Other names under which a constructor may ask for columns of a point; `in_channels` are those of an image."""


def construct(layer: str, columns: Columns) -> nn.Module:
    """Return a layer made from the columns of a point that its constructor's signature names, in whatever order.

    `layer` is `module:attribute` of a class or function.
    Raises LookupError if the layer can't be imported or asks for what is no column.
    """
    make = _import(layer)
    module = make(**_arguments(layer, make, columns))
    if not isinstance(module, nn.Module):
        raise LookupError(f"layer {layer!r} must make a torch.nn.Module, got {type(module).__name__}")
    return module


def _import(layer: str) -> Callable[..., Any]:
    module, _, attribute = layer.partition(":")
    try:
        make = reduce(getattr, attribute.split("."), importlib.import_module(module))
    except Exception as error:  # whatever a user's file does when it is read
        kind = "" if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: "
        raise LookupError(f"layer {layer!r} can't be imported: {kind}{error}") from error
    if not callable(make):
        raise LookupError(f"layer {layer!r} must be callable, got {type(make).__name__}")
    return make


def _arguments(layer: str, make: Callable[..., Any], columns: Columns) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(make).parameters.items():
        if name in columns:
            arguments[name] = columns[name]
        elif name in ALIASES:
            arguments[name] = ALIASES[name](columns)
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            known = ", ".join([*columns, *ALIASES])
            raise LookupError(f"layer {layer!r} asks for {name!r}, which is no column; expected some of {known}")
    return arguments
