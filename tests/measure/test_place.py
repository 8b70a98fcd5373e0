"""Where something is in an output."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from bench.measure.place import place


@pytest.mark.parametrize(
    ("wrong", "items", "text"),
    [
        (lambda w: w[:, 64:].fill_(True), range(4), "tokens 64 to 196"),
        (lambda w: w[1, 3].fill_(True), range(4), "item 1, token 3"),
        (lambda w: w[2:, :, 8:16].fill_(True), range(4), "items 2 to 3, channels 8 to 15"),
        (lambda w: w[:, ::64].fill_(True), range(4), "4 of 197 tokens, the first is 0"),
        (lambda w: w.fill_(True), range(4), ""),
        (lambda w: w[1].fill_(True), [3, 5, 8, 9], "item 5"),
    ],
)
def test_the_place_of_an_error_names_what_is_wrong(wrong: Any, items: Sequence[int], text: str) -> None:
    """As a tile's edge, an item of the batch by its number there, or a head's channels.

    An axis that is all wrong says nothing.
    """
    mask = torch.zeros(4, 197, 32, dtype=torch.bool)
    wrong(mask)
    assert place(mask, torch.ones_like(mask), items) == text
