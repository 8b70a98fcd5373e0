"""Refusals of what can't be carried out."""

from collections.abc import Callable

import pytest

from bench.plan.errors import WrongRequest


def refusal(call: Callable[..., object], *arguments: object, **options: object) -> str:
    """Return the message with which a call refuses its arguments."""
    with pytest.raises(WrongRequest) as refused:
        call(*arguments, **options)
    return str(refused.value)
