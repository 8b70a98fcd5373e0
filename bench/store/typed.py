"""Values from a file or another process, checked against declared types."""

import json
import sys
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

T = TypeVar("T")


def decode(kind: type[T], content: bytes) -> T:
    """Return JSON as a type; raises ValueError with the place of the mistake and the broken rule."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, RecursionError):  # half of a surrogate pair too, as Python writes it
        return convert(plain(content), kind)  # type: ignore[no-any-return]


def plain(content: bytes) -> Any:
    """Return the values of JSON, whatever their types; raises ValueError for anything else."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None


def convert(value: Any, kind: Any, name: str = "") -> Any:
    """Return a value as a type; raises ValueError like `decode`, with the value's name."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {error}".removeprefix(": ")) from None
