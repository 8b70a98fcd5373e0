"""Hints for softmaxes that belong to no core."""

import torch
from torch import Tensor, nn

from impls.graph.cores import found
from impls.graph.tracing import traced
from tests.written_cores import B, D, H, N, Written


def banded(x: Tensor) -> Tensor:
    """Return attention of each token and the one before, of two products."""
    before = torch.cat([x[:, :1], x[:, :-1]], 1)
    scores = torch.cat([x[:, :, None] @ x[:, :, None].mT, x[:, :, None] @ before[:, :, None].mT], -1)
    return (scores.softmax(-1) @ torch.stack([x, before], 2))[:, :, 0]


def test_a_cap_of_scores_is_for_another_function() -> None:
    """Gemma 2's tanh is no mask."""
    (softmax,) = found(traced(Written("soft cap"), [torch.randn(B, N, H * D)])).unknown
    assert "score_mod" in softmax.hinted


def test_parts_of_a_window_are_a_mask_of_all_scores() -> None:
    """Scores of several products are put beside each other."""
    (softmax,) = found(traced(banded, [torch.randn(2, 5, 8)])).unknown
    assert "outside" in softmax.hinted


def test_a_gate_has_no_hint() -> None:
    """It is no attention."""
    module = nn.Sequential(nn.Linear(8, 4), nn.Softmax(-1))
    (softmax,) = found(traced(module, [torch.randn(2, 5, 8)])).unknown
    assert softmax.hinted == softmax.reason
