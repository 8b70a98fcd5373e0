"""Fused operators as calls of attention: flex_attention."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from bench.modules.graph.cores import found
from bench.modules.graph.rewriting import rewritten
from bench.modules.graph.tracing import traced
from impls.attend import sdpa
from impls.contract import Unsupported

BIAS = torch.randn(2, 6, 6)

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without")


def layer(score_mod: Any = None, mask_mod: Any = None) -> Callable[[Tensor], Tensor]:
    """Return a function of an input `[1, 2, 6, 8]` that calls flex_attention with programs."""
    block_mask = None if mask_mod is None else create_block_mask(mask_mod, None, None, 6, 6, device="cpu")

    def function(x: Tensor) -> Tensor:
        y: Tensor = flex_attention(x, x.roll(1, -2), 2 * x, score_mod=score_mod, block_mask=block_mask)
        return y

    return function


def causal(_b: Tensor, _h: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Show earlier keys."""
    return query >= key


def hidden(score: Tensor, _b: Tensor, _h: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Hide later keys."""
    return torch.where(query >= key, score, float("-inf"))


@pytest.mark.parametrize(
    ("score_mod", "mask_mod", "is_causal"),
    [
        (None, None, False),
        (lambda score, _, h, i, j: score + BIAS[h, i, j], None, False),
        (lambda score, *places: score * 2 + (places[2] - places[3]), causal, False),
        (None, causal, True),
        (hidden, None, True),
    ],
)
def test_a_factor_and_a_mask_are_read(score_mod: Any, mask_mod: Any, is_causal: bool) -> None:
    """Another core computes the same, also at another input."""
    function, x = layer(score_mod, mask_mod), torch.randn(1, 2, 6, 8)
    graph = traced(function, (x,))
    (core,) = found(graph).cores
    assert (core.obstacle, core.causal) == ("", is_causal)
    new, other = rewritten(graph, sdpa.attend).module, torch.randn_like(x)
    assert torch.allclose(new(other), function(other), atol=1e-5)


def test_a_program_that_does_more_is_refused() -> None:
    """A soft cap is no factor."""
    graph = traced(layer(lambda score, *_: 5 * torch.tanh(score / 5)), (torch.randn(1, 2, 6, 8),))
    (core,) = found(graph).cores
    assert "more to scores" in core.obstacle
    with pytest.raises(Unsupported, match="more to scores"):
        rewritten(graph, sdpa.attend)
