"""What a line to paste says."""

import pytest
import torch
from torch import Tensor, nn

from impls.modules.proposal import proposed
from tests.written_cores import traced, traces_of


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("plain", "q, k, v"),
        ("query scaled", "q, k, v, scale=1.0"),
        ("boolean mask", "q, k, v, attn_mask=~mask"),
        ("mask that shows", "q, k, v, attn_mask=mask"),
        ("two boolean masks", "q, k, v, attn_mask=~mask & ~mask_2"),
        ("causal", "q, k, v, is_causal=True"),
        ("causal that is added", "q, k, v, is_causal=True"),
        ("bias", "q, k, v, attn_mask=2.0 * bias"),
        ("bias and boolean mask", "q, k, v, attn_mask=bias.masked_fill(mask, torch.finfo(v.dtype).min)"),
        ("cosine", "q * factor, k, v, attn_mask=bias, scale=1.0"),
        ("learned number", "q / factor, k, v, scale=1.0"),
        ("largest first", "q, k, v, attn_mask=bias"),
    ],
)
def test_a_line_has_every_term(kind: str, arguments: str) -> None:
    """A bias, a mask with the meaning of SDPA, a factor, and a scale that isn't the usual one."""
    (trace,) = traces_of(kind)
    assert proposed(trace).expression == f"F.scaled_dot_product_attention({arguments})"


@pytest.mark.parametrize(
    ("kind", "shapes"),
    [
        ("two masks", [(1, 2, 6, 6), (1, 2, 1, 6, 6)]),
        ("alibi", [(8, 6, 6), (6, 6)]),
        ("images", [(2, 6, 6), (2, 1, 6, 6)]),
    ],
)
def test_tensors_are_those_of_the_source(kind: str, shapes: list[tuple[int, ...]]) -> None:
    """The line brings them into shapes that can be broadcast to [B, H, N, M]."""
    (trace,) = traces_of(kind)
    proposal = proposed(trace)
    assert [tuple(term.tensor.shape) for term in proposal.terms.values()] == shapes
    mask = proposal.expression.partition("attn_mask=")[2].partition(", scale")[0]
    assert mask not in ("bias + mask", "")


def test_operands_lie_as_the_model_had_them() -> None:
    """A product copies its operands in another order; the line gets what was copied."""
    (trace,) = traces_of("plain")
    recorded = proposed(trace).recorded()
    assert {name: recorded[name].stride() for name in "qkv"} == dict.fromkeys("qkv", (6 * 48, 8, 48, 1))


class OfTwo(nn.Linear):
    """Attention of two items of two tokens, in which the second token of the first item is hidden."""

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens for tokens [2, 2, 4]."""
        q = super().forward(x)[:, None]
        mask = torch.tensor([[False, True], [False, False]])[:, None, None]
        return (q @ q.mT).masked_fill(mask, float("-inf")).softmax(-1) @ q


def test_a_mask_of_items_that_looks_causal_is_not() -> None:
    """The mask's numbers are those of a triangle, and its dimensions are items and keys."""
    (trace,) = traced(OfTwo(4, 4), torch.randn(2, 2, 4))
    assert "attn_mask=~mask" in proposed(trace).expression
