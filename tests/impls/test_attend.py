"""The cores, each against a written softmax and against what it says of itself."""

import ast
import inspect

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

import impls
from impls import control
from impls.attend import eager, manual, online, sdpa
from impls.contract import Attend
from impls.layers.vit import ViTAttention
from tests.impls import reference
from tests.impls.reference import LACKING, ROUNDING, Watch, array, distance, normal

CORES = {"eager": eager.attend, "manual": manual.attend, "online": online.attend, "sdpa": sdpa.attend}

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
    """In float64 a core equals softmax((q·scale) kᵀ) v to rounding, whatever its sizes, and leaves its inputs alone.

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


@pytest.mark.parametrize("name", CORES)
def test_a_causal_core_sees_no_later_token(name: str) -> None:
    """With the mask "causal" each token's output is the softmax over itself and the tokens before it.

    The first token's output depends on no other key or value, so its gradient has none.
    """
    for tokens in (1, 2, 127, 128, 129, 300):
        q, k, v = (tensor.requires_grad_() for tensor in qkv(2, 2, tokens, 4))
        output = CORES[name](q, k, v, 0.5, mask="causal")
        for last in {0, tokens // 2, tokens - 1}:
            seen, one = slice(0, last + 1), slice(last, last + 1)
            expected = reference.attend(array(q)[:, :, one], array(k)[:, :, seen], array(v)[:, :, seen], 0.5)
            assert distance(output[:, :, one], expected) < ROUNDING, (tokens, last)
        output[:, :, 0].sum().backward()
        assert k.grad is not None
        assert v.grad is not None
        assert not k.grad[:, :, 1:].any()
        assert not v.grad[:, :, 1:].any()
        assert bool(v.grad[:, :, 0].all())


def test_eager_scales_the_queries_and_manual_goes_head_by_head() -> None:
    """Eager scales `[B, H, N, D]` queries and not the `[B, H, N, N]` scores, as the origin spells it.

    Manual holds the scores of one head at a time: two products for each head, its softmax written out.
    """
    with Watch() as watch:
        eager.attend(*qkv(2, 3, 10, 4), 0.5)
    assert (watch.shapes("mul"), watch.shapes("_softmax")) == ([(2, 3, 10, 4)], [(2, 3, 10, 10)])
    with Watch() as watch:
        manual.attend(*qkv(2, 3, 10, 4), 0.5)
    assert watch.shapes("bmm") == [(2, 10, 10), (2, 10, 4)] * 3
    assert (watch.shapes("exp"), watch.shapes("_softmax")) == ([(2, 10, 10)] * 3, [])


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


@pytest.mark.parametrize("loudest", [0, 130, 255, 256, 299])
def test_online_finds_the_maximum_in_any_block(loudest: int) -> None:
    """A key that outshouts all others is followed wherever it stands, in the first block or a cut last one."""
    k = torch.zeros(1, 1, 300, 4)
    k[..., loudest, :] = 100.0

    output = online.attend(torch.ones(1, 1, 3, 4), k, torch.arange(300.0).reshape(1, 1, 300, 1), 1.0)

    assert output.flatten().tolist() == [loudest] * 3


def test_sdpa_is_pytorchs_own() -> None:
    """Sdpa hands the whole core to scaled_dot_product_attention and computes nothing beside it."""
    inputs = qkv(2, 3, 10, 4)
    with torch.inference_mode(), torch.profiler.profile() as profile:
        sdpa.attend(*inputs, 0.5)
    outermost = [event.name for event in profile.events() or [] if event.cpu_parent is None]
    assert outermost == ["aten::scaled_dot_product_attention"]


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
def test_flex_computes_the_layer() -> None:
    """flex_attention gives what eager gives."""
    layer, x = ViTAttention(32, 32, 2).eval(), normal(2, 16, 32)
    with torch.inference_mode():
        np.testing.assert_allclose(impls.build(layer, "flex")(x), layer(x), atol=1e-5)


def steps(function: object) -> list[str]:
    """Return the statements of a function, without its docstring and comments."""
    (definition,) = ast.parse(inspect.getsource(function)).body  # type: ignore[arg-type]
    assert isinstance(definition, ast.FunctionDef)
    return [ast.unparse(statement) for statement in definition.body[1:]]


def test_the_control_is_a_copy_of_eager() -> None:
    """Statement by statement, in a function of its own, so that a difference in time is not caused by the code.

    `impls.control:adapt` is an implementation like any other and gives the same bits.
    """
    assert steps(control.attend) == steps(eager.attend)
    assert control.attend is not eager.attend
    layer, x = ViTAttention(8, 8, 2), normal(2, 5, 8)
    with torch.inference_mode():
        assert torch.equal(impls.build(layer, "impls.control:adapt")(x), impls.build(layer, "eager")(x))
