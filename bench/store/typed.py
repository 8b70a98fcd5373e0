"""Values from a file or another process, checked by declared types."""

import json
import re
import reprlib
import sys
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A whole number that a table can hold."""

Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
"""A whole number of at least 1."""

Amount = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
"""A finite number of at least 0."""

Seconds = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
"""A finite number of seconds above 0."""

WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "empty",
    "object": "an object",
    "str": "text",
}
"""The words for the types that msgspec names."""

BOUNDS = {"of length": "with a length", ">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}
"""The words for the bounds there."""

EXPECTED = re.compile(r"Expected `([^`]*)`(.*?)(?:, got `.*)?")
MISSING = re.compile(r"Object missing required field `(.*)`")
STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
"""The parts of msgspec's messages: a rule, a missing field, and a step to the place of a value."""

T = TypeVar("T")


def decode(kind: type[T], content: bytes) -> T:
    """Return JSON as a type; raises ValueError with the place, the rule and the value that broke it."""
    try:
        return _decoder(kind).decode(content)  # type: ignore[no-any-return, arg-type]
    except (msgspec.MsgspecError, RecursionError):  # half of a surrogate pair too, as Python writes it
        return convert(plain(content), kind)  # type: ignore[no-any-return]


@cache
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


def plain(content: bytes) -> Any:
    """Return the values of JSON, whatever their types; raises ValueError for anything else."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None


def convert(value: Any, kind: Any, name: str = "") -> Any:
    """Return a value as a type; raises ValueError as `decode` does, for which the value has a name."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_in_words(str(error), value, name)) from None


def _in_words(error: str, value: Any, name: str) -> str:
    """Return a message of msgspec with the name of the place, and the value there."""
    rule, _, path = error.partition(" - at `$")
    place = f"{name}{path.removesuffix('`')}".removeprefix(".")
    for key, index in STEP.findall(path.partition("[...]")[0]):  # msgspec names no key of a dictionary
        value = value[key] if key else value[int(index)]
    if lacks := MISSING.fullmatch(rule):
        return f"{f'{place}.' if place else ''}{lacks[1]} is missing"
    if expected := EXPECTED.fullmatch(rule):
        kinds = " or ".join(WORDS.get(kind, kind) for kind in expected[1].split(" | "))
        bounds = re.sub("of length|[<>]=?", lambda each: BOUNDS[each[0]], expected[2])
        rule = f"{place or 'it'} must be {kinds}{bounds}"
    elif rule.endswith("out of range"):
        rule = f"{place or 'it'} must be a number in range"
    else:  # a rule of our own
        return rule
    return f"{rule}, got {reprlib.repr(value)}"
