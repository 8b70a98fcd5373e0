"""Ranges of whole numbers such as `128:2048:128`, a short way to write a list."""

import re
from typing import TypeGuard

from bench.plan.errors import WrongRequest

RANGE = re.compile(r"([0-9]{1,15}):([0-9]{1,15})(?::(x?)([0-9]{1,15}))?")
FORMS = "first:last, first:last:step or first:last:xfactor, as 128:2048:128 or 128:2048:x2"

MOST = 10_000
"""A range of more numbers than this is refused as a mistake."""


def is_range(value: object) -> TypeGuard[str]:
    """Return whether a value is meant as a range."""
    return isinstance(value, str) and ":" in value


def numbers(text: str) -> list[int]:
    """Return the numbers of a range: `first:last:step` adds the step (default 1), `first:last:xfactor` multiplies.

    The last number belongs to the range if the steps reach it exactly.
    Raises WrongRequest for a text of another form, and for a range that is empty or too long.
    """
    match = RANGE.fullmatch(text.strip())
    if match is None:
        raise WrongRequest(f"{text} must be {FORMS}")
    first, last, by, factor = int(match[1]), int(match[2]), int(match[4] or 1), bool(match[3])
    if first < 1 or by < (2 if factor else 1):
        raise WrongRequest(f"{text} must start at 1 or more, with a step of at least 1 or a factor of at least 2")
    if last < first:
        raise WrongRequest(f"{text} is empty: the last number, {last}, is below the first, {first}")
    if not factor and (last - first) // by >= MOST:
        raise WrongRequest(f"{text} holds {(last - first) // by + 1:,} numbers; a range may hold {MOST:,}")
    if not factor:
        return list(range(first, last + 1, by))
    powers = [first]
    while powers[-1] * by <= last:
        powers.append(powers[-1] * by)
    return powers
