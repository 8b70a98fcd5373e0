"""Find an adapter by name, and build an implementation from a layer and a name."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import nn
from torch.nn import attention

from impls.catalogue import IMPLEMENTATIONS, Entry, Name, name_of
from impls.contract import (
    ATTEND_PARAMETERS,
    Adapt,
    Attend,
    Implementation,
    Unresolved,
    Unsupported,
    WithoutCore,
    attribute,
    declared_options,
    imported,
    is_ours,
    is_required,
    parameters_of,
    takes_core,
    with_attend,
)

QUERIES = re.compile(r"x?(q|qs|qkv|query|queries)(_\w*)?")
"""Names of a first parameter that show that a function isn't an adapter."""

BESIDE = (__package__ or "").removesuffix("impls")
"""The prefix of packages beside this one: empty in a checkout, else the installed package and a dot."""


def build(layer: nn.Module, name: str) -> Implementation:
    """Return the implementation `name` of a layer; both share the layer's parameters.

    `name` is a key of `impls.catalogue.IMPLEMENTATIONS`, or `module:attribute` of your own adapter or attend.
    Options that the adapter declares may follow in brackets: `online[block_tokens=64]`.
    Raises `Unsupported` if the implementation can't express the layer, Unresolved for an unknown name or option,
    ValueError for a name that breaks the grammar.
    """
    parsed = name_of(name)
    if not parsed.is_own and (reason := _refusal(parsed.entry, layer)):
        raise Unsupported(reason)
    activate(name)
    adapt = _adapter(parsed)
    is_whole = parsed.is_own and not hasattr(adapt, "options")  # `with_attend` sets them
    if is_whole and (bare := attribute(layer, "bare")) is not None:
        with suppress(WithoutCore):  # its wrapper has other ways
            return adapt(bare, **parsed.options)  # a user's adapter gets the module for which it is written
    return adapt(layer, **parsed.options)


def check(name: str) -> None:
    """Raise Unresolved if the implementation can't be imported, or doesn't declare an option of its name."""
    _adapter(name_of(name))


def _adapter(parsed: Name) -> Adapt:
    adapt = resolve(parsed.text)
    declared = declared_options(adapt)
    for option in parsed.options:
        if option not in declared:
            rule = f"expected one of {', '.join(sorted(declared))}" if declared else "it has no options"
            raise Unresolved(f"{parsed.base} has no option {option!r}; {rule}")
    return adapt


def versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed packages that implementations need besides torch, by package."""
    packages = {package for name in names for package in name_of(name).entry.packages}
    return {package: installed for package in sorted(packages) if (installed := _version(package))}


def _refusal(entry: Entry, layer: nn.Module) -> str:
    """Return why an implementation can't compute a layer here: the layer, no GPU or no package; empty if it may."""
    if reason := entry.refusal(type(layer).__name__ if is_ours(layer) else ""):
        return reason
    places = {each.device.type for each in (*layer.parameters(), *layer.buffers())}
    if entry.on_gpu and "cuda" not in places and (places or not torch.cuda.is_initialized()):
        return "it runs only on a GPU"
    missing = [package for package in entry.packages if not _version(package)]
    how = entry.source or f"pip install {' '.join(missing)}"
    return f"{missing[0]} is not installed; {how}" if missing else ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def activate(name: str) -> None:
    """Make torch use the FlashAttention that an implementation needs, if its package is installed.

    Raises `Unsupported` if the package can't be imported.
    """
    entry = name_of(name).entry
    is_there = entry.flash and all(map(_version, entry.packages))
    if is_there and attention.current_flash_attention_impl() != entry.flash:
        try:
            attention.activate_flash_attention_impl(entry.flash)
        except ImportError as error:
            raise Unsupported(f"{entry.packages[0]} can't be imported: {' '.join(str(error).split())}") from None


def compiles(name: str) -> bool:
    """Return whether an implementation is meant to be compiled by torch.compile."""
    parsed = name_of(name)
    return bool(getattr(resolve(name), "compiles", False)) if parsed.is_own else parsed.entry.compiles


def resolve(name: str) -> Adapt:
    """Return the adapter of a name, without its options: a shipped one, or a user's own.

    An attend in place of an adapter is wrapped by `with_attend`.
    Raises Unresolved for an unknown name, a module that can't be imported, an attribute that isn't callable, or a
    function that is neither adapter nor attend.
    """
    name = name_of(name).base
    what = f"implementation {name!r}"
    if name in IMPLEMENTATIONS:
        adapter = IMPLEMENTATIONS[name].adapter
        return imported(f"{BESIDE}{adapter[1:]}" if adapter.startswith(".") else f"{__package__}.{adapter}", what)
    if ":" not in name:
        expected = ", ".join(IMPLEMENTATIONS)
        raise Unresolved(f"unknown implementation {name!r}; expected one of {expected}, or module:attribute")
    found = imported(name, what)
    attend = attend_of(found, name)
    return found if attend is None else with_attend(attend)


def attend_of(function: Callable[..., Any], name: str) -> Attend | None:
    """Return a function if it is an attend, None if it is an adapter.

    Raises Unresolved, with the wrapper to write, for another function of queries, keys and values, for a class that
    doesn't take just a layer, and for unknown parameters.
    """
    if isinstance(getattr(function, "options", None), frozenset):
        return None  # `with_attend` made it
    parameters = parameters_of(function)
    required = sum(map(is_required, parameters))
    if isinstance(function, type):
        if required != 1 or issubclass(function, torch.autograd.Function):
            own = f"for a layer use --layer {name}"
            raise _no_attend(name, f"it is a class, which must take only a layer; {own}")
        return None
    if not parameters:
        raise _no_attend(name, "its parameters are unknown")
    if required < ATTEND_PARAMETERS and not QUERIES.fullmatch(parameters[0].name.lower()):
        return None
    if not takes_core(function):
        raise _no_attend(name, "it is not an attend(q, k, v, scale)")
    return function


def _no_attend(name: str, reason: str) -> Unresolved:
    """Return the error that says why a function can't be used as it is, and which wrapper to write."""
    module, _, attribute = name.partition(":")
    return Unresolved(
        f"implementation {name!r} can't be used as it is: {reason}; write in a file of your own, for [B, H, N, D]: "
        f"from {module} import {attribute.partition('.')[0]}; "
        f"def attend(q, k, v, scale): return {attribute}(q, k, v, …)"
    )
