"""The cores of the reference, and where they may be put."""

import copy
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention

from bench.measure import cores
from bench.modules.core import Adaptable
from impls.attend import eager, sdpa
from impls.layers.vit import ViTAttention
from tests.make.checks import checked
from tests.make.points import point


@pytest.mark.parametrize("mask", [None, "causal"])
def test_the_drawn_rows_are_those_of_eager_and_the_others_are_unknown(mask: str | None) -> None:
    """The system draws them: every item and head has the same, and another core others."""
    q, k = torch.randn(2, 2, 3, 37, 4, dtype=torch.float64)
    v = torch.randn(2, 3, 37, 6, dtype=torch.float64)
    expected, some = (attend(q, k, v, 0.5, mask=mask) for attend in (eager.attend, cores.at_random_rows(5)))
    rows = ~some.isnan()
    assert rows.all(dim=-1).sum(dim=-1).tolist() == [[5] * 3] * 2
    assert torch.equal(rows, rows[:1, :1].expand_as(rows))
    torch.testing.assert_close(some[rows], expected[rows])
    others = cores.at_random_rows(5)(q, k, v, 0.5, mask=mask)
    assert not torch.equal(others.isnan(), some.isnan())


def grouped(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return the core for heads of keys that serve several of queries."""
    o: Tensor = F.scaled_dot_product_attention(q, k, v, scale=scale, enable_gqa=True)
    return o


class Grouped(nn.Module):
    """A layer with fewer heads of keys and values than of queries, and its own core."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(12, 20)
        self.attend = grouped

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, 12]` for tokens."""
        q, k, v = (each.unflatten(2, (-1, 4)).transpose(1, 2) for each in self.qkv(x).split([12, 4, 4], dim=2))
        return self.attend(q, k, v, 0.5).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(
    ("layer", "attend", "is_plain"),
    [
        (ViTAttention(12, 12, 3), None, True),
        (ViTAttention(12, 12, 3, mask="causal"), None, True),
        (ViTAttention(12, 12, 3, mask="causal"), partial(sdpa.attend, mask="causal"), True),
        (ViTAttention(12, 12, 3), lambda q, k, v, scale: eager.attend(q, k, v, 2 * scale), False),
        (ViTAttention(12, 12, 3), partial(sdpa.attend, mask="causal"), False),
        (ViTAttention(12, 12, 3), lambda *qkv: qkv[2], False),
        (Adaptable(ViTAttention(12, 12, 3), ((7, 12),)), None, True),
        (Adaptable(nn.MultiheadAttention(12, 3), ((7, 12),)), None, False),
        (nn.Linear(12, 12), None, False),
    ],
)
def test_a_core_is_plain_if_it_is_the_formula(layer: nn.Module, attend: Any, *, is_plain: bool) -> None:
    """With the mask that the layer has and equal heads: only there may the judge put cores of its own."""
    layer = copy.copy(layer)
    if attend:
        layer.attend = attend
    assert cores.is_plain(layer, (torch.randn(2, 7, 12),)) is is_plain


def test_the_reference_of_grouped_heads_is_the_layer_as_it_is() -> None:
    """No core for equal heads is put into it: a right one for grouped heads is found right, and a wrong one wrong."""
    at = point(layer="tests.measure.test_cores:Grouped", num_heads=3, dtype="bfloat16")
    assert checked(at, "tests.measure.test_cores:grouped").severity < 1
    assert checked(at, "tests.mutants:mean_of_values").severity > 1
