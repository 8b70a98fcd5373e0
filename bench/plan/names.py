"""The names of layers and implementations, each with its meaning."""

from collections.abc import Iterable
from importlib.metadata import entry_points

from bench.plan import layers
from bench.plan.case import CONTROL, Point
from impls import catalogue
from impls.catalogue import SOURCES, is_model, parse

LAYERS = {name: layer.meaning for name, layer in layers.LAYERS.items()}

IMPLEMENTATIONS = {name: entry.meaning for name, entry in catalogue.IMPLEMENTATIONS.items()}


def is_implementation(name: str) -> bool:
    """Return whether a name may be an implementation; `module:attribute` is checked later, at its import."""
    try:
        base = parse(name).base
    except ValueError:
        return False
    module, colon, attribute = base.partition(":")
    return bool(module and attribute) if colon else base in known_names() or base in catalogue.SETTINGS


def known_names() -> tuple[str, ...]:
    """Return the names of implementations: the suite's own, and those of installed packages, none of them CONTROL."""
    installed = (entry.name for entry in entry_points(group=catalogue.ENTRY_POINT_GROUP))
    return tuple(dict.fromkeys(name for name in (*IMPLEMENTATIONS, *installed) if name != CONTROL))


def is_own(name: str) -> bool:
    """Return whether an implementation is a user's own: `module:attribute`, or from an installed package."""
    return parse(name).base not in catalogue.KNOWN


def may_have_own_memory(name: str) -> bool:
    """Return whether an implementation may use memory that torch's allocator does not see."""
    return is_own(name) or bool(catalogue.KNOWN[parse(name).base].packages)


def libraries_of(points: Iterable[Point]) -> tuple[str, ...]:
    """Return the libraries that the models of points come from; for a model of a user's own that is torch."""
    sources = dict.fromkeys(point.layer.partition(":")[0] for point in points if is_model(point.layer))
    return tuple(dict.fromkeys(source if source in SOURCES else "torch" for source in sources))
