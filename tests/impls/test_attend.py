"""The cores, each against a written softmax and against what it says of itself."""

import numpy as np
import pytest
import torch
from torch import Tensor

from impls.attend import eager, manual, online, sdpa
from impls.contract import Attend
from tests.impls import reference
from tests.impls.reference import array, distance, normal
from tests.impls.watch import Watch

CORES = [
    pytest.param(eager.attend, id="eager"),
    pytest.param(manual.attend, id="manual"),
    pytest.param(online.attend, id="online"),
    pytest.param(sdpa.attend, id="sdpa"),
]


def qkv(
    batch: int, heads: int, tokens: int, width: int, dtype: torch.dtype = torch.float64, *, values: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Return normal queries, keys and values; the values may have another width."""
    q, k, v = (normal(batch, heads, tokens, each, dtype=dtype) for each in (width, width, values or width))
    return q, k, v


def error(attend: Attend, q: Tensor, k: Tensor, v: Tensor, scale: float) -> float:
    """Return how far a core is off the written softmax."""
    return distance(attend(q, k, v, scale), reference.attend(array(q), array(k), array(v), scale))


SIZES = [(13, 4, 100, 16), (1, 1, 1, 1), (2, 3, 2, 5), (1, 2, 127, 8), (1, 2, 128, 8), (1, 2, 257, 8), (1, 1, 300, 4)]
"""Batch, heads, tokens, and channels of a head."""


@pytest.mark.parametrize("attend", CORES)
def test_output_is_the_softmax_of_the_values(attend: Attend) -> None:
    """In float64 a core equals softmax((q·scale) kᵀ) v to rounding, whatever its sizes.

    Any scale, zero and negative too; values of another width than keys; scores whose exponentials overflow.
    """
    for size in SIZES:
        assert error(attend, *qkv(*size), size[-1] ** -0.5) < 1e-12, size
    for scale in (0.0, -1.0, 0.1, 7.0):
        assert error(attend, *qkv(2, 3, 11, 4), scale) < 1e-12
    for values in (1, 9):
        assert error(attend, *qkv(2, 2, 130, 4, values=values), 0.5) < 1e-12
    q, k, v = qkv(1, 2, 150, 4, torch.float32)
    assert error(attend, q * 1000, k, v, 0.5) < 1e-3


@pytest.mark.parametrize("attend", CORES)
def test_inputs_stay_as_they_are(attend: Attend) -> None:
    """A core writes into none of its inputs, because the layer adds the values afterwards."""
    inputs = qkv(2, 2, 130, 4)
    copies = [tensor.clone() for tensor in inputs]

    with torch.inference_mode():
        attend(*inputs, 0.5)

    assert all(torch.equal(tensor, copy) for tensor, copy in zip(inputs, copies, strict=True))


def test_eager_scales_the_queries() -> None:
    """Eager scales `[B, H, N, D]` queries and not the `[B, H, N, N]` scores, as the origin spells it."""
    with Watch() as watch:
        eager.attend(*qkv(2, 3, 10, 4), 0.5)

    assert watch.shapes("mul") == [(2, 3, 10, 4)]
    assert watch.shapes("_softmax") == [(2, 3, 10, 10)]


def test_manual_goes_head_by_head() -> None:
    """Manual holds the scores of one head at a time: two products for each head, its softmax written out."""
    with Watch() as watch:
        manual.attend(*qkv(2, 3, 10, 4), 0.5)

    assert watch.shapes("bmm") == [(2, 10, 10), (2, 10, 4)] * 3
    assert watch.shapes("exp") == [(2, 10, 10)] * 3
    assert watch.shapes("_softmax") == []


def test_sdpa_is_pytorchs_own() -> None:
    """Sdpa hands the whole core to scaled_dot_product_attention and computes nothing beside it."""
    inputs = qkv(2, 3, 10, 4)

    with torch.inference_mode(), torch.profiler.profile() as profile:
        sdpa.attend(*inputs, 0.5)

    outermost = [event.name for event in profile.events() or [] if event.cpu_parent is None]
    assert outermost == ["aten::scaled_dot_product_attention"]


@pytest.mark.parametrize("tokens", [129, 300, 512])
def test_online_never_holds_the_scores(tokens: int) -> None:
    """No tensor that online makes is as large as `[N, N]` for a head, whether or not blocks divide the tokens."""
    with torch.no_grad(), Watch() as watch:
        online.attend(*qkv(1, 1, tokens, 8), 0.5)

    assert max(ran.elements for ran in watch.ran) < tokens * tokens
    assert all(ran.shape[-2:] != (tokens, tokens) for ran in watch.ran)


def test_online_memory_is_linear_in_tokens() -> None:
    """Twice the tokens make online's largest tensor twice as large, where eager's grows fourfold."""

    def largest(attend: Attend, tokens: int) -> int:
        watch = Watch()
        with torch.no_grad(), watch:
            attend(*qkv(1, 2, tokens, 8), 0.5)
        return max(ran.elements for ran in watch.ran)

    assert largest(online.attend, 1024) == 2 * largest(online.attend, 512)
    assert largest(eager.attend, 1024) == 4 * largest(eager.attend, 512)


@pytest.mark.parametrize("loudest", [0, 130, 255, 256, 299])
def test_online_finds_the_maximum_in_any_block(loudest: int) -> None:
    """A key that outshouts all others is followed wherever it stands, in the first block or a cut last one."""
    q = torch.ones(1, 1, 3, 4)
    k = torch.zeros(1, 1, 300, 4)
    k[..., loudest, :] = 100.0
    v = torch.arange(300.0).reshape(1, 1, 300, 1)

    output = online.attend(q, k, v, 1.0)

    np.testing.assert_array_equal(output.numpy(), np.full((1, 1, 3, 1), float(loudest)))


@pytest.mark.parametrize("attend", CORES)
@pytest.mark.parametrize("tokens", [1, 2, 127, 128, 129, 300])
def test_a_causal_core_sees_no_later_token(attend: Attend, tokens: int) -> None:
    """With the mask "causal" each token's output is the softmax over itself and the tokens before it."""
    q, k, v = qkv(2, 2, tokens, 4)

    output = attend(q, k, v, 0.5, mask="causal")

    for last in {0, tokens // 2, tokens - 1}:
        seen = slice(0, last + 1)
        expected = reference.attend(array(q)[:, :, last : last + 1], array(k)[:, :, seen], array(v)[:, :, seen], 0.5)
        assert distance(output[:, :, last : last + 1], expected) < 1e-12


@pytest.mark.parametrize("attend", CORES)
def test_a_causal_core_has_no_gradient_from_later_tokens(attend: Attend) -> None:
    """The first token's output depends on no other key or value."""
    q, k, v = (tensor.requires_grad_() for tensor in qkv(1, 1, 130, 4))

    attend(q, k, v, 0.5, mask="causal")[:, :, 0].sum().backward()

    assert k.grad is not None
    assert v.grad is not None
    assert not k.grad[:, :, 1:].any()
    assert not v.grad[:, :, 1:].any()
    assert bool(v.grad[:, :, 0].all())
