"""From the name of an implementation to its adapter."""

import importlib
from collections.abc import Mapping
from functools import reduce
from importlib.metadata import entry_points

from impls.contract import Adapt

ENTRY_POINT_GROUP = "attention_bench.implementations"


class Unresolved(LookupError):  # noqa: N818 - a name that is no implementation
    """Raised for a name that gives no adapter; the message says why."""


def resolve(name: str, known: Mapping[str, Adapt]) -> Adapt:
    """Return the adapter of that name: a known one, an installed entry point, or `module:attribute`.

    Raises Unresolved with the rule, what came and what could have come.
    """
    if name in known:
        return known[name]
    if ":" in name:
        return _import(name, name)
    for entry in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return _import(entry.value, name)
    raise Unresolved(f"unknown implementation {name!r}; expected one of {', '.join(known)}, or module:attribute")


def _import(path: str, name: str) -> Adapt:
    module, _, attribute = path.partition(":")
    try:
        adapt = reduce(getattr, attribute.split("."), importlib.import_module(module))
    except (Exception, SystemExit) as error:  # whatever a user's file does when it is read
        kind = "" if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: "
        raise Unresolved(f"implementation {name!r} can't be imported: {kind}{error}") from error
    if not callable(adapt):
        raise Unresolved(f"implementation {name!r} must be callable, got {type(adapt).__name__}")
    return adapt
