"""How many dimensions an error asks for."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench.measure.dimensions import asked_dimensions


def error_of(call: Callable[[], Any]) -> Exception:
    """Return the error that a call ends with."""
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever torch raises
        call()
    return raised.value


def unpack_map(x: Tensor) -> int:
    """Return the width of a map."""
    _, _, _, width = x.shape
    return width


def unpack_tokens(x: Tensor) -> int:
    """Return the width of tokens."""
    _, _, width = x.shape
    return width


def unpack_something(pair: tuple[int, ...]) -> int:
    """Return the second of two."""
    _, second = pair
    return second


X = {dimensions: torch.zeros(2, *[4] * (dimensions - 1)) for dimensions in (2, 3, 4, 5)}


@pytest.mark.parametrize(
    ("call", "dimensions"),
    [
        (lambda: unpack_map(X[3]), 4),
        (lambda: unpack_tokens(X[4]), 3),
        (lambda: nn.Conv2d(4, 1, 1)(X[3]), 4),
        (lambda: nn.Conv2d(4, 1, 1)(X[5]), 4),
        (lambda: nn.Conv1d(4, 1, 1)(X[4]), 3),
        (lambda: nn.BatchNorm2d(4)(X[3]), 4),
        (lambda: nn.BatchNorm1d(4)(X[4]), 3),
        (lambda: X[3].permute(0, 2, 3, 1), 4),
        (lambda: X[3].flatten(3), 4),
        (lambda: nn.MultiheadAttention(4, 1)(X[4], X[4], X[4]), 3),
        (lambda: nn.LSTM(4, 4)(X[4]), 3),
        (lambda: unpack_something((1, 2, 3)), None),
        (lambda: nn.Linear(3, 1)(X[3]), None),
    ],
)
def test_an_error_may_say_the_dimensions(call: Callable[[], Any], dimensions: int | None) -> None:
    """Python's, torch's, and that of a convolution, which takes too few as an input without a batch."""
    assert asked_dimensions(error_of(call)) == dimensions
