"""Ranges of whole numbers such as `128:2048:128`, a short way to write a list."""

from typing import TypeGuard

from bench.plan.errors import WrongRequest

FORMS = "first:last, first:last:step or first:last:xfactor, as 128:2048:128 or 128:2048:x2"

MOST = 10_000
"""A range of more numbers than this is refused as a mistake."""


def is_range(value: object) -> TypeGuard[str]:
    """Return whether a value is meant as a range."""
    return isinstance(value, str) and ":" in value


def numbers(text: str) -> list[int]:
    """Return the numbers of a range: `first:last:step` adds the step, `first:last:xfactor` multiplies by the factor.

    The last number belongs to the range if the steps reach it exactly. The step is 1 if none is given.
    Raises WrongRequest for a text of another form, and for a range that is empty or too long.
    """
    words = text.strip().split(":")
    step = words[2] if len(words) == 3 else "1"
    factor = step.startswith("x")
    if len(words) not in (2, 3) or not all(_is_number(word) for word in (*words[:2], step.removeprefix("x"))):
        raise WrongRequest(f"{text} must be {FORMS}")
    first, last, by = int(words[0]), int(words[1]), int(step.removeprefix("x"))
    if first < 1 or by < (2 if factor else 1):
        raise WrongRequest(f"{text} must start at 1 or more, with a step of at least 1 or a factor of at least 2")
    if last < first:
        raise WrongRequest(f"{text} is empty: the last number, {last}, is below the first, {first}")
    if not factor and (last - first) // by >= MOST:
        raise WrongRequest(f"{text} holds {(last - first) // by + 1:,} numbers; a range may hold {MOST:,}")
    return _powers(first, last, by) if factor else list(range(first, last + 1, by))


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 16


def _powers(first: int, last: int, factor: int) -> list[int]:
    powers = [first]
    while powers[-1] * factor <= last:
        powers.append(powers[-1] * factor)
    return powers
