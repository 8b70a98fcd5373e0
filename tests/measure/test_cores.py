"""The cores of the reference have the numbers of eager, and those with equal weights none of queries and keys."""

import copy
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention

from bench.measure import cores, workload
from bench.modules.core import Adaptable
from impls.attend import eager, sdpa
from impls.layers.vit import ViTAttention
from tests.make.checks import checked
from tests.make.points import point

MASKS = (None, "causal")


def tensors(*, grad: bool = False) -> tuple[torch.Tensor, ...]:
    """Return q, k and v of two items, three heads, 37 tokens, where v is wider."""
    generator = torch.Generator().manual_seed(1)
    shapes = ((2, 3, 37, 4), (2, 3, 37, 4), (2, 3, 37, 6))
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_(grad) for shape in shapes)


@pytest.mark.parametrize("mask", MASKS)
def test_the_drawn_rows_are_those_of_eager_and_the_others_are_unknown(mask: str | None) -> None:
    """The system draws them: every item and head has the same, and another core others."""
    q, k, v = tensors()
    expected, some = (attend(q, k, v, 0.5, mask=mask) for attend in (eager.attend, cores.at_random_rows(5)))
    rows = ~some.isnan()
    assert rows.all(dim=-1).sum(dim=-1).tolist() == [[5] * 3] * 2
    assert torch.equal(rows, rows[:1, :1].expand_as(rows))
    torch.testing.assert_close(some[rows], expected[rows])
    others = cores.at_random_rows(5)(q, k, v, 0.5, mask=mask)
    assert not torch.equal(others.isnan(), some.isnan())


@pytest.mark.parametrize("scores", [1, 2 * 3 * 37 * 10])
@pytest.mark.parametrize("mask", MASKS)
def test_blocks_have_the_output_and_the_gradients_of_eager(
    mask: str | None, scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a block is one query, or ten with a shorter last block."""
    monkeypatch.setattr(cores, "LONG_SCORES", scores)
    results = []
    for attend in (eager.attend, cores.in_blocks):
        q, k, v = tensors(grad=True)
        o = attend(q, k, v, 0.5, mask=mask)
        results.append((o, *torch.autograd.grad(o, [q, k, v], torch.ones_like(o).cumsum(-1))))
    torch.testing.assert_close(results[0], results[1])


def test_the_largest_logit_is_that_of_the_scaled_product() -> None:
    """The largest logit grows with the square of the input; a layer that never calls its core has none."""
    work = workload.make(point())
    x = work.inputs()[0][:1]
    with torch.no_grad():
        q, k, _ = work.layer.get_submodule("qkv")(x).unflatten(2, (3, 3, -1)).permute(2, 0, 3, 1, 4)
    expected = float((q @ k.mT).max()) * q.shape[-1] ** -0.5
    assert cores.largest_logit(work.layer, (x,)) == pytest.approx(expected, rel=1e-5)
    assert cores.largest_logit(work.layer, (3 * x,)) == pytest.approx(9 * expected, rel=1e-5)


def grouped(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return the core for heads of keys that serve several of queries."""
    o: Tensor = F.scaled_dot_product_attention(q, k, v, scale=scale, enable_gqa=True)
    return o


class Grouped(nn.Module):
    """A layer whose heads of keys and values are fewer than those of queries, with a core of its own."""

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
        (ViTAttention(12, 12, 3), sdpa.attend, True),
        (ViTAttention(12, 12, 3, mask="causal"), partial(sdpa.attend, mask="causal"), True),
        (ViTAttention(12, 12, 3), lambda q, k, v, scale: eager.attend(q, k, v, 2 * scale), False),
        (ViTAttention(12, 12, 3), partial(sdpa.attend, mask="causal"), False),
        (ViTAttention(12, 12, 3), lambda *qkv: qkv[2], False),
        (Grouped(), None, False),
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


@pytest.mark.parametrize("shape", [(37,), (1, 37), (37, 37), (2, 1, 1, 37), (3, 37, 37)])
def test_rows_have_their_part_of_a_mask(shape: tuple[int, ...]) -> None:
    """A mask that is the same for all queries is taken whole, also one of keys alone."""
    (q, k, v), bias = tensors(), torch.randn(shape, dtype=torch.float64)
    expected = F.scaled_dot_product_attention(q, k, v, bias.expand(2, 3, 37, 37), scale=0.5)
    some = cores.at_random_rows(5)(q, k, v, 0.5, attn_mask=bias)
    torch.testing.assert_close(some[~some.isnan()], expected[~some.isnan()])
    torch.testing.assert_close(cores.in_blocks(q, k, v, 0.5, attn_mask=bias), expected)
