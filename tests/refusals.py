"""Refusals of what can't be carried out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.plan.errors import WrongRequest


def refusal(call: Callable[..., object], *arguments: object, **options: object) -> str:
    """Return the message with which a call refuses its arguments."""
    with pytest.raises(WrongRequest) as refused:
        call(*arguments, **options)
    return str(refused.value)


def unseen_flips(load: Callable[[Path], Any], path: Path) -> list[int]:
    """Return the places of a file at which a flipped bit is neither refused in one line with the path, nor harmless.

    `load` takes the folder.
    """
    content, expected = path.read_bytes(), load(path.parent)
    unseen = []
    for place in range(len(content)):
        flipped = bytes([content[place] ^ (1 << place % 8)])
        path.write_bytes(content[:place] + flipped + content[place + 1 :])
        try:
            found = load(path.parent)
        except WrongRequest as error:
            found = expected if str(path) in str(error) and "\n" not in str(error) else None
        if found != expected:
            unseen.append(place)
    return unseen
