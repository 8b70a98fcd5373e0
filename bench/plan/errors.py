"""Requests that can't be carried out."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bench.plan.statuses import UNMEASURED, WRONG

NOT_FINITE = "is not finite"
"""The words for a layer's output with NaN or infinity: it isn't measured, and the answer quotes them."""

ALIKE = 0.5
"""The least similarity, from 0 to 1, at which a name is suggested for another: `fp32` and `float32` have 0.55."""

NUMBERS = re.compile(r"[0-9]+")

PART = 3
"""The fewest letters of a word that matches a longer name which contains it: `heads` for `num_heads`."""


class WrongRequest(ValueError):  # noqa: N818 - users see the message, not the name
    """The user's request is wrong; it is refused before anything runs.

    The message has a line for each mistake: the rule, the given value, and the possible values.
    `status` is the exit status of the command.
    """

    status = WRONG


class NotComparable(WrongRequest):
    """The two results were not measured under the same conditions."""

    status = UNMEASURED


class CannotWrite(WrongRequest):
    """Results can't be written: the disk is full, or the folder is gone. Earlier results are kept."""

    status = UNMEASURED


@contextmanager
def refusing(what: str, kind: type[WrongRequest] = WrongRequest, more: str = "") -> Iterator[None]:
    """Turn an OSError inside into an error of a kind: what failed, the system's reason, and `more`."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror}{more}") from None


def unknown(what: str, name: object, expected: Iterable[str]) -> WrongRequest:
    """Return the error for an unknown name, with the known names and the nearest of them."""
    return WrongRequest(unknown_names(what, [name], expected))


def unknown_names(what: str, names: Sequence[object], expected: Iterable[str], listed: str = "") -> str:
    """Return one error line for all these names, with the known names (or where they are listed) and the nearest."""
    expected = list(expected)
    plural = "s" if len(names) > 1 else ""
    known = listed or ", ".join(expected)
    line = f"unknown {what}{plural} {', '.join(map(repr, names))}; expected one of {known}"
    pairs = [(near, name) for name in names if (near := nearest(name, expected))]
    suggestions = [near if len(names) == 1 else f"{near} for {name!r}" for near, name in pairs]
    return line + (f"; did you mean {', '.join(suggestions)}?" if suggestions else "")


def suggestion(name: object, expected: Iterable[str]) -> str:
    """Return the end of an error line that suggests the nearest known name, empty if none is near."""
    near = nearest(name, expected)
    return f"; did you mean {near}?" if near else ""


def nearest(name: object, expected: Iterable[str]) -> str:
    """Return the known name that is most similar to a name or contains it; empty if none is near.

    A name with numbers matches only names that share one: `float16` isn't near `float64`.
    """
    if not isinstance(name, str):
        return ""
    word = name.lower()
    numbers = {*NUMBERS.findall(word)}
    expected = [each for each in expected if not numbers or numbers & {*NUMBERS.findall(each)}]
    longer = [each for each in expected if len(word) >= PART and word in each]
    matches = difflib.get_close_matches(word, longer or expected, n=1, cutoff=0.0 if longer else ALIKE)
    return matches[0] if matches else ""


def refuse(mistakes: Iterable[str]) -> None:
    """Raise one WrongRequest with a line for each mistake, if there are any; empty lines are ignored."""
    if lines := list(dict.fromkeys(filter(None, mistakes))):
        raise WrongRequest("\n".join(lines))


def all_of(*makers: Callable[[], Any]) -> list[Any]:
    """Return the result of each maker; raise one WrongRequest with all their mistakes."""
    results, mistakes = [], []
    for maker in makers:
        try:
            results.append(maker())
        except WrongRequest as error:
            mistakes.append(str(error))
    refuse(mistakes)
    return results
