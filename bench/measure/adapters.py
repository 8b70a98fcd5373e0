"""Import of implementations' adapters; changes of the process's state by an import are recorded."""

import impls
from bench.measure.process_state import ANY, LeftChanged, State
from impls.name import parse

_changed: dict[str, str] = {}
"""The changes of the process's state by each module's import, as a text; modules without changes are left out."""


def resolve(name: str) -> impls.Adapt:
    """Return the adapter of an implementation; `check` reports the changes that its module's import made.

    A module may set environment variables that were not set. Raises LookupError if there is no such adapter.
    """
    state = State()
    try:
        return impls.resolve(parse(name).base)
    finally:
        changed = state.changes(free=ANY)
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
