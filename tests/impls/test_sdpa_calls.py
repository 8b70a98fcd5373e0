"""The stand-in for `F.scaled_dot_product_attention`, and the cast of its masks."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from impls import Unsupported
from impls.sdpa_calls import bridge, mask_cast
from tests import tiny_models


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attn_mask": torch.zeros(5, 5)}, "a mask tensor, but this attend declares no keyword attn_mask"),
        ({"is_causal": True}, "a causal mask, but this attend declares no keyword mask"),
        ({"dropout_p": 0.1}, "dropout, but this attend declares no keyword dropout_p"),
    ],
)
def test_what_an_attend_does_not_declare_is_refused(options: dict[str, object], words: str) -> None:
    """Never dropped in silence."""
    q = torch.randn(1, 2, 5, 4)
    with pytest.raises(Unsupported, match=words):
        bridge(tiny_models.right)(q, q, q, **options)


@pytest.mark.parametrize("lead", [(3,), (2, 3), (2, 2, 3), (1, 2, 2, 3)])
@pytest.mark.parametrize("mask", [None, (5, 6), (3, 5, 6)])
def test_queries_of_other_dimensions_become_batch_and_heads(
    lead: tuple[int, ...], mask: tuple[int, ...] | None
) -> None:
    """An attend gets four dimensions, with a mask that fits; the output has the call's dimensions, values are wider."""
    q, k, v = (torch.randn(*lead, *sizes) for sizes in ((5, 4), (6, 4), (6, 7)))
    attn_mask = None if mask is None else torch.randn(mask)
    dimensions: list[int] = []

    def attend(q: torch.Tensor, *others: torch.Tensor, attn_mask: torch.Tensor | None = None) -> torch.Tensor:
        dimensions.append(q.dim())
        return tiny_models.with_mask(q, *others, attn_mask=attn_mask)  # type: ignore[arg-type]  # the scale is last

    torch.testing.assert_close(bridge(attend)(q, k, v, attn_mask), F.scaled_dot_product_attention(q, k, v, attn_mask))
    assert dimensions == [4]


KEYS = 32
"""As many as a vector of numbers has at least twice."""


def weights_of(function: Any, mask: torch.Tensor) -> torch.Tensor:
    """Return the weights of a query whose logits are all 1, in float64 with a scale of 0.5 and a mask."""
    q, k = torch.zeros(1, 1, 1, KEYS).double(), torch.zeros(1, 1, KEYS, KEYS).double()
    q[..., 0] = k[..., 0] = 1.0
    return function(q, k, torch.eye(KEYS).double()[None, None], mask, scale=0.5)[0, 0, 0]  # type: ignore[no-any-return]


def test_a_mask_is_cast_to_the_type_of_the_queries() -> None:
    """One of numbers; a boolean one, and none, are as they were."""
    mask = torch.arange(KEYS) / KEYS
    for each in (mask, mask.double(), mask.bfloat16()):
        expected = (0.5 + each.double()).softmax(-1)
        assert torch.allclose(weights_of(mask_cast, each[None]), expected)
    assert torch.allclose(weights_of(mask_cast, (mask > 0)[None]), (mask > 0).double() / (KEYS - 1))
