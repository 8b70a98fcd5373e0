"""What masks do, by their values."""

import pytest
import torch
from torch import Tensor

from bench.modules.graph.masks import noted

LOW = float("-inf")


def kind(mask: Tensor, **options: bool) -> str:
    """Return the kind of one mask."""
    (only,) = noted(mask, **options)
    return only.kind


def keys(*shown: int, of: int = 5) -> Tensor:
    """Return for each item a mask `[B, 1, 1, of]` that is true for so many keys."""
    return (torch.arange(of) < torch.tensor(shown)[:, None])[:, None, None]


def added(shown: Tensor, low: float = LOW) -> Tensor:
    """Return a boolean mask as numbers that are added to the scores."""
    return torch.zeros(shown.shape).masked_fill(~shown, low)


CAUSAL = torch.ones(4, 5, dtype=torch.bool).tril()


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (CAUSAL, "causal"),
        (CAUSAL.expand(3, 1, 4, 5), "causal"),
        (CAUSAL.repeat(3, 2, 1, 1), "causal"),
        (torch.ones(4, 5, dtype=torch.bool).tril(1), "other"),  # the lower right corner
        (torch.ones(5, 5, dtype=torch.bool).tril().triu(-1), "other"),
        (keys(5, 3), "padding"),
        (keys(5, 3).expand(2, 3, 4, 5), "padding"),
        (keys(5, 3).repeat(1, 3, 4, 1), "padding"),
        (keys(5, 5), "padding"),
        (keys(5, 3) & CAUSAL, "other"),
        (keys(5, 3).transpose(0, 1), "other"),  # another one for each head
    ],
)
def test_what_hides_has_a_kind(mask: Tensor, expected: str) -> None:
    """It is the same for what shows, for what hides, and for numbers that are added or subtracted."""
    assert kind(mask) == expected
    assert kind(~mask, shows=False) == expected
    assert kind(added(mask)) == kind(added(mask, -1e9)) == expected
    assert kind(-added(mask, -1e9), is_subtracted=True) == expected


def test_numbers_that_hide_nothing_are_a_bias() -> None:
    """Also those that hide a little, such as the -100 of Swin; one with a gradient is learned, whatever its numbers."""
    bias = torch.randn(1, 2, 4, 5)
    assert kind(bias) == kind(added(CAUSAL, -100.0)) == kind(bias + added(CAUSAL)) == "given"
    assert kind(bias.requires_grad_()) == kind(torch.zeros(4, 5, requires_grad=True)) == "learned"


def test_a_mask_is_written_with_its_dtype_and_shape() -> None:
    """No mask is nothing."""
    (only,) = noted(keys(5, 3))
    assert (str(only), only.dtype, only.shape) == ("bool [2, 1, 1, 5]", "bool", (2, 1, 1, 5))
    assert noted(None) == ()


@pytest.mark.parametrize(
    ("mask", "lengths"),
    [
        (keys(5, 3), (5, 3)),
        (keys(5, 3).expand(2, 3, 4, 5), (5, 3)),
        (keys(3).expand(2, 1, 1, 5), (3, 3)),
        (keys(5, 0), ()),  # nothing is left of an item
        (keys(5, 3).flip(-1), (5, 3)),  # the first keys are padding
        (CAUSAL, ()),
        (keys(5)[0, 0], ()),  # no items
    ],
)
def test_padding_leaves_the_length_of_an_item(mask: Tensor, lengths: tuple[int, ...]) -> None:
    """As a boolean mask, and as numbers that are added."""
    assert [each.lengths for each in (*noted(mask), *noted(added(mask)))] == [lengths] * 2
