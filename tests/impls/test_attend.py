"""The cores, each against a written-out softmax and against its own claims."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

import impls
from impls.attend import eager, manual, online, sdpa
from impls.contract import Attend, checked
from impls.layers.vit import ViTAttention
from tests.impls import reference
from tests.impls.reference import LACKING, ROUNDING, Watch, array, distance, normal

CORES = {"eager": eager.attend_safely, "manual": manual.attend, "online": online.attend, "sdpa": sdpa.attend}

MASKED = {**{name: checked(core) for name, core in CORES.items()}, "sdpa_math": sdpa.pinned(SDPBackend.MATH)}
"""The cores, with repeated heads of keys for cores that don't support grouped heads."""

SIZES = [(13, 4, 100, 16), (1, 1, 1, 1), (2, 3, 2, 5), (1, 2, 127, 8), (1, 2, 128, 8), (1, 2, 257, 8), (1, 1, 300, 4)]
"""Batch, heads, tokens, and channels of a head."""


def qkv(
    batch: int, heads: int, tokens: int, width: int, dtype: torch.dtype = torch.float64, *, values: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Return normal queries, keys and values; the values may have another width."""
    q, k, v = (normal(batch, heads, tokens, each, dtype=dtype) for each in (width, width, values or width))
    return q, k, v


def error(attend: Attend, q: Tensor, k: Tensor, v: Tensor, scale: float) -> float:
    """Return how far a core is off the written softmax; it must write into none of its inputs."""
    expected = reference.attend(array(q), array(k), array(v), scale)
    before = [tensor.clone() for tensor in (q, k, v)]
    output = attend(q, k, v, scale)
    assert all(torch.equal(now, copy) for now, copy in zip((q, k, v), before, strict=True))
    return distance(output, expected)


@pytest.mark.parametrize("name", CORES)
def test_output_is_the_softmax_of_the_values(name: str) -> None:
    """In float64 a core equals softmax((q·scale) kᵀ) v to rounding for all sizes, and doesn't change its inputs.

    Any scale, zero and negative too; values of another width than keys; scores whose exponentials overflow.
    The implementation of a core's name computes bit for bit what the layer computes with that core.
    """
    attend = CORES[name]
    for size in SIZES:
        assert error(attend, *qkv(*size), size[-1] ** -0.5) < ROUNDING, size
    for scale in (0.0, -1.0, 0.1, 7.0):
        assert error(attend, *qkv(2, 3, 11, 4), scale) < ROUNDING
    for values in (1, 9):
        assert error(attend, *qkv(2, 2, 130, 4, values=values), 0.5) < ROUNDING
    q, k, v = qkv(1, 2, 150, 4, torch.float32)
    assert error(attend, q * 1000, k, v, 0.5) < 1e-3

    layer, x = ViTAttention(8, 8, 2), normal(2, 300, 8)
    implementation = impls.build(layer, name)
    layer.attend = attend
    assert torch.equal(implementation(x), layer(x))


def by_torch(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None, attn_mask: Tensor | None, enable_gqa: bool
) -> Tensor:
    """Return the result of the formula of torch's function, with both masks in one tensor, as it requires."""
    if mask:
        sees = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
        attn_mask = sees if attn_mask is None else attn_mask
        is_bool = attn_mask.dtype == torch.bool
        attn_mask = attn_mask & sees if is_bool else torch.where(sees, attn_mask, float("-inf"))
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, attn_mask, scale=scale, enable_gqa=enable_gqa)


def mask_tensor(*shape: int, floating: bool) -> Tensor:
    """Return a mask with some hidden keys, all of them in the first row if it has several."""
    sees = torch.rand(shape) > 0.4
    rows = sees.view(-1, shape[-1])
    rows[0] = rows[0] & (len(rows) == 1)
    return normal(*shape, dtype=torch.float64).masked_fill(~sees, float("-inf")) if floating else sees


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("name", MASKED)
def test_a_core_takes_the_masks_and_the_grouped_heads_of_torchs_function(name: str, floating: bool) -> None:
    """Outputs and gradients equal those of torch's function, including the gradient of a floating mask.

    Masks of every shape that can be broadcast, or none, with "causal" and without, and fewer or more keys than queries.
    A query whose keys are all hidden gives zeros, and gradients are finite.
    """
    sizes = [(3, 5, 4), (5, 3, 2), (130, 260, 1)]  # queries, keys, heads of keys
    for (queries, keys, heads), mask in itertools.product(sizes, (None, "causal")):
        for shape in ((), (queries, keys), (1, keys), (2, 1, 1, keys), (4, queries, 1), (2, 4, queries, keys)):
            q, k, v = (
                normal(2, *each, 4, dtype=torch.float64) for each in ((4, queries), (heads, keys), (heads, keys))
            )
            attn_mask = mask_tensor(*shape, floating=floating) if shape else None
            leaves = [
                each.requires_grad_() for each in (q, k, v, attn_mask) if each is not None and each.dtype != torch.bool
            ]
            results = []
            for core in (MASKED[name], by_torch):
                output = core(q, k, v, 0.3, mask=mask, attn_mask=attn_mask, enable_gqa=heads < 4)
                results.append([output, *torch.autograd.grad(output.square().sum(), leaves)])
            got, expected = results
            assert all(map(torch.isfinite, [each.sum() for each in expected]))
            near = [torch.allclose(*pair, rtol=ROUNDING, atol=ROUNDING) for pair in zip(got, expected, strict=True)]
            assert all(near), (queries, keys, heads, mask, shape, near)


@pytest.mark.parametrize("name", MASKED)
def test_an_output_has_the_type_of_the_queries(name: str) -> None:
    """It holds for any type of mask; a query that sees no key gives zeros, with finite gradients."""
    q, k, v = (normal(1, 2, tokens, 4, dtype=torch.bfloat16).requires_grad_() for tokens in (3, 5, 5))
    added = torch.zeros(3, 5).index_fill(0, torch.tensor(1), float("-inf"))
    output = MASKED[name](q, k, v, 0.5, mask=None, attn_mask=added)
    assert output.dtype == q.dtype
    assert not output[:, :, 1].any()
    assert all(each.isfinite().all() for each in torch.autograd.grad(output.sum(), (q, k, v)))


def largest(attend: Attend, tokens: int) -> int:
    """Return the elements of the largest tensor that a core makes; none has the scores of all tokens but eager's."""
    with torch.no_grad(), Watch() as watch:
        attend(*qkv(1, 2, tokens, 8), 0.5)
    assert attend is eager.attend or all(shape[-2:] != (tokens, tokens) for _, shape in watch.ran)
    return max(torch.Size(shape).numel() for _, shape in watch.ran)


def test_onlines_memory_is_linear_in_tokens() -> None:
    """No tensor of online is as large as `[N, N]`, whether or not blocks divide the tokens.

    Twice the tokens make its largest tensor twice as large, where eager's grows fourfold.
    """
    assert all(largest(online.attend, tokens) < 2 * tokens**2 for tokens in (129, 300, 512))
    assert largest(online.attend, 1024) == 2 * largest(online.attend, 512)
    assert largest(eager.attend, 1024) == 4 * largest(eager.attend, 512)


@pytest.mark.parametrize("name", LACKING)
@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device may have these backends")
def test_a_backend_that_the_machine_lacks_is_unsupported_with_torchs_reason(name: str) -> None:
    """Nothing else runs in its place."""
    implementation = impls.build(ViTAttention(8, 8, 2), name)
    with pytest.raises(impls.Unsupported, match="No viable backend"):
        implementation(normal(1, 5, 8))


@pytest.mark.filterwarnings("ignore:Flash")
def test_what_a_backend_cannot_do_is_unsupported_with_the_obstacle() -> None:
    """Flash attention on the CPU wants values as wide as keys, and torch's words for it reach the reader."""
    with pytest.raises(impls.Unsupported, match="to have the same last dimension"):
        sdpa.pinned(SDPBackend.FLASH_ATTENTION)(*qkv(1, 2, 5, 8, values=4), 1.0)


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("compiler")
def test_flex_takes_masks_and_grouped_heads_and_compiles_once_for_a_shape() -> None:
    """Both masks together and grouped heads give what torch's function gives, zeros for a query that sees nothing.

    Another mask tensor of the same shape makes no other graph, and a floating one makes its own.
    """
    attend, graphs = flex(), []
    q, k, v = (normal(2, heads, tokens, 16) for heads, tokens in ((4, 40), (2, 50), (2, 50)))
    for floating in (False, False, True, True):
        attn_mask = mask_tensor(2, 1, 40, 50, floating=floating).to(torch.float32 if floating else torch.bool)
        options: dict[str, Any] = {"mask": "causal", "attn_mask": attn_mask, "enable_gqa": True}
        with torch.inference_mode():
            np.testing.assert_allclose(attend(q, k, v, 0.3, **options), by_torch(q, k, v, 0.3, **options), atol=1e-5)
        graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert graphs[0] == graphs[1] < graphs[2] == graphs[3]


def test_flex_refuses_a_mask_that_needs_a_gradient_on_the_cpu() -> None:
    """FlexAttention has no backward there, and says so for q, k and v alone."""
    with pytest.raises(impls.Unsupported, match="does not support backward on CPU"):
        flex()(*qkv(1, 2, 5, 8), 1.0, attn_mask=torch.zeros(5, 5, requires_grad=True))


def flex() -> Attend:
    """Return the core of a layer with flex_attention."""
    attend: Attend = impls.build(ViTAttention(32, 32, 2), "flex").attend  # type: ignore[attr-defined]  # an adapted layer
    return attend
