"""Denormal numbers in weights, in results and inside a call."""

import pytest
import torch
from torch import Tensor

from bench.measure import denormals

NORMAL, DENORMAL = torch.tensor([1.0, 0.0, -1e-30]), torch.tensor([1e-40, -1e-40, 1.0])


@pytest.mark.parametrize(
    ("weights", "result", "counts"),
    [
        ([NORMAL], NORMAL, (0, 0)),
        ([NORMAL, DENORMAL], NORMAL, (2, 0)),
        ([NORMAL.half(), DENORMAL.bfloat16()], DENORMAL, (2, 2)),
        ([torch.tensor([1e-7]).half(), torch.tensor([3])], torch.tensor([1e-310], dtype=torch.float64), (0, 1)),
    ],
)
def test_denormal_weights_and_results_are_counted(
    weights: list[Tensor], result: Tensor, counts: tuple[int, int]
) -> None:
    """0 is none, and those of float16 are normal numbers to a CPU. What they cost is known if there are any."""
    found = denormals.found(lambda: (result, (None, NORMAL)), weights)
    total = sum(each.numel() for each in weights)
    assert [*found["denormals"].values()] == [(counts[0], total), (counts[1], result.numel() + 3)]
    assert (found["denormal_slowdown"] is None) == (counts == (0, 0))


@pytest.mark.skipif(denormals._library() is None, reason="this processor or C library doesn't tell")
def test_denormal_numbers_within_a_call_are_met() -> None:
    """Though neither weights nor results are any; a call before it plays no part."""
    ones = torch.ones(64)
    assert float((ones * 1e-39).sum()) > 0
    assert denormals.found(lambda: ones * 2, [ones])["denormal_slowdown"] is None
    assert denormals.found(lambda: (ones * 1e-39) * 1e39, [ones])["denormal_slowdown"] > 0
    assert torch.tensor([1e-39]) * 1 != 0, "denormal numbers are flushed after it"
