"""Find an adapter by its name, and build an implementation from a layer and a name."""

import importlib
from functools import reduce
from importlib.metadata import entry_points

from torch import nn

from impls.catalogue import ENTRY_POINT_GROUP, IMPLEMENTATIONS
from impls.contract import Adapt, Implementation, Unresolved, Unsupported, declared_options
from impls.name import parse


def build(layer: nn.Module, name: str) -> Implementation:
    """Return the implementation `name` of a layer; both share the layer's parameters.

    `name` is a key of `impls.catalogue.IMPLEMENTATIONS`, an entry point of the group
    `attention_bench.implementations`, or `module:attribute` of your own adapter.
    Options that the adapter declares may follow in brackets: `online[block_tokens=64]`.
    Raises `Unsupported` if the implementation can't express the layer, Unresolved for an unknown name or option,
    ValueError for a name that breaks the grammar.
    """
    base, options = (parsed := parse(name)).base, parsed.options
    is_ours = base in IMPLEMENTATIONS and type(layer).__module__.startswith("impls.layers.")
    if is_ours and (reason := IMPLEMENTATIONS[base].refuses.get(type(layer).__name__)):
        raise Unsupported(reason)
    adapt = resolve(base)
    declared = declared_options(adapt)
    for option in options:
        if option not in declared:
            raise Unresolved(f"{base} has no option {option!r}; {_expected(declared)}")
    return adapt(layer, **options)


def compiles(name: str) -> bool:
    """Return whether an implementation is meant to be compiled by torch.compile."""
    base = parse(name).base
    if base in IMPLEMENTATIONS:
        return IMPLEMENTATIONS[base].compiles
    return bool(getattr(resolve(base), "compiles", False))


def resolve(name: str) -> Adapt:
    """Return the adapter of a name without options: a shipped one, an installed entry point, or `module:attribute`.

    Raises Unresolved for an unknown name, a module that can't be imported, and an attribute that isn't callable.
    """
    if name in IMPLEMENTATIONS:
        return _import(IMPLEMENTATIONS[name].adapter, name)
    if ":" in name:
        return _import(name, name)
    for entry in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return _import(entry.value, name)
    expected = ", ".join(IMPLEMENTATIONS)
    raise Unresolved(f"unknown implementation {name!r}; expected one of {expected}, or module:attribute")


def _import(path: str, name: str) -> Adapt:
    module, _, attribute = path.partition(":")
    try:
        adapt = reduce(getattr, attribute.split("."), importlib.import_module(module))
    except (Exception, SystemExit) as error:  # a user's module may raise anything when it is imported
        kind = "" if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: "
        raise Unresolved(f"implementation {name!r} can't be imported: {kind}{error}") from error
    if not callable(adapt):
        raise Unresolved(f"implementation {name!r} must be callable, got {type(adapt).__name__}")
    return adapt


def _expected(options: frozenset[str]) -> str:
    return f"expected one of {', '.join(sorted(options))}" if options else "it has no options"
