"""Requests that can't be carried out."""

from collections.abc import Iterable


class WrongRequest(ValueError):  # noqa: N818 - said to the user as it is
    """A request that is wrong before anything runs: one line with the rule, what came and what could have come."""


class NotComparable(WrongRequest):
    """Two results that were not measured under the same conditions."""


class CannotWrite(WrongRequest):
    """Results that can't be written: the disk is full, or the folder is gone; what was written before is kept."""


def unknown(what: str, name: object, expected: Iterable[str]) -> WrongRequest:
    """Return the refusal of an unknown name, with the names that are known."""
    return WrongRequest(f"unknown {what} {name!r}; expected one of {', '.join(expected)}")
