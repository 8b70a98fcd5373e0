"""The adapters of implementations, whose modules are imported with the state of the process kept."""

import impls
from bench.measure.process_state import ANY, LeftChanged, State
from impls.name import parse

_changed: dict[str, str] = {}
"""What each module changed when it was imported, as far as it changed anything."""


def resolve(name: str) -> impls.Adapt:
    """Return the adapter of that name; what its module leaves changed is put back, and told by `check`.

    A module may set environment variables that nobody has set. Raises LookupError if there is no such adapter.
    """
    state = State()
    try:
        return impls.resolve(parse(name).base)
    finally:
        changed = state.restore(free=ANY)
        if changed:
            _changed[_module(name)] = changed


def compiles(name: str) -> bool:
    """Return whether an implementation is meant to be compiled by torch.compile."""
    resolve(name)
    return impls.compiles(name)


def check(name: str) -> None:
    """Raise LeftChanged if the module of an implementation changed the state of the process when it was imported."""
    resolve(name)
    changed = _changed.get(_module(name))
    if changed:
        raise LeftChanged(f"{changed} (when it was imported)")


def _module(name: str) -> str:
    return parse(name).base.partition(":")[0]
