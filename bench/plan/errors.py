"""Requests that can't be carried out."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

NEAR = 0.5
"""How alike two names must be, from 0 to 1, for one to be suggested for the other: `fp32` is 0.55 like `float32`."""

PART = 3
"""A word of so many letters is taken for a part of a name: `heads` for `num_heads`."""


class WrongRequest(ValueError):  # noqa: N818 - said to the user as it is
    """A request that is wrong before anything runs: a line for each mistake, with the rule, what came and what could.

    Several mistakes are lines of one message.
    """


class NotComparable(WrongRequest):
    """Two results that were not measured under the same conditions."""


class CannotWrite(WrongRequest):
    """Results that can't be written: the disk is full, or the folder is gone; what was written before is kept."""


def unknown(what: str, name: object, expected: Iterable[str]) -> WrongRequest:
    """Return the refusal of an unknown name, with the names that are known and the nearest of them."""
    return WrongRequest(unknown_names(what, [name], expected))


def unknown_names(what: str, names: Sequence[object], expected: Iterable[str]) -> str:
    """Return one line that refuses all these names, with the names that are known and the nearest to each."""
    known = list(expected)
    plural = "s" if len(names) > 1 else ""
    line = f"unknown {what}{plural} {', '.join(map(repr, names))}; expected one of {', '.join(known)}"
    found = [(near, name) for name in names if (near := nearest(name, known))]
    suggested = [near if len(names) == 1 else f"{near} for {name!r}" for near, name in found]
    return line + (f"; did you mean {', '.join(suggested)}?" if suggested else "")


def suggestion(name: object, expected: Iterable[str]) -> str:
    """Return the end of a refusal that names the nearest known name, empty if none is near."""
    near = nearest(name, expected)
    return f"; did you mean {near}?" if near else ""


def nearest(name: object, expected: Iterable[str]) -> str:
    """Return the known name that is most like a name, or that has it as a part; empty if none is near."""
    if not isinstance(name, str):
        return ""
    known, word = list(expected), name.lower()
    longer = [each for each in known if len(word) >= PART and word in each]
    found = difflib.get_close_matches(word, longer or known, n=1, cutoff=0.0 if longer else NEAR)
    return found[0] if found else ""


def all_of(*makers: Callable[[], Any]) -> list[Any]:
    """Return what each maker returns; raise one WrongRequest with the mistakes of all of them."""
    made, mistakes = [], []
    for maker in makers:
        try:
            made.append(maker())
        except WrongRequest as error:
            mistakes.append(str(error))
    if mistakes:
        raise WrongRequest("\n".join(dict.fromkeys(mistakes)))
    return made
