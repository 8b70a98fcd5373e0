"""Items of different lengths, padded and packed, against loops in float64 over the items without padding."""

import inspect
import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn

import impls
from impls import Unsupported
from impls.attend import packed
from impls.layers.attention import Attention
from impls.layers.core import Core
from impls.layers.self_attention import SelfAttention
from impls.layers.vit import ViTAttention
from impls.packing import pack, packs
from tests.impls import oracle
from tests.impls.reference import ROUNDING, Array, array, normal, weights

PADDED = ("eager", "manual", "online", "sdpa", "sdpa_math", "mha", "mha_weights")
PACKED = ("loop", "nested", "varlen")

LONGEST = 9
LENGTHS = (4, 9, 1, 6, 4, 2)
"""Of one token and of all, two of one length, in no order."""

FORMULAS: dict[str, Callable[..., Array]] = {
    "core": oracle.core,
    "attention": oracle.attention,
    "grouped": oracle.attention,
    "vit": oracle.vit,
}

HUGE = 1e3
"""What padding holds: it would be seen in any sum."""


def made(kind: str, mask: str) -> tuple[Any, list[tuple[int, ...]], Any]:
    """Return a layer in float64, the shapes of its inputs for padded items, and its columns."""
    given: dict[str, Any] = {"mask": mask, "lengths": "uniform"}
    groups, batch = (2 if kind == "grouped" else None), len(LENGTHS)
    layer: nn.Module
    if kind == "core":
        layer = Core(16, 4, num_tokens=LONGEST, **given)
    elif kind == "vit":
        layer = ViTAttention(16, 16, 4, qkv_bias=True, **given)
    else:
        layer = Attention(16, 16, 4, num_tokens=LONGEST, num_kv_heads=groups, qkv_bias=True, **given)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    shapes: list[tuple[int, ...]] = [(batch, 4, LONGEST, 4)] * 3 if kind == "core" else [(batch, LONGEST, 16)]
    plain = {"num_kv_tokens": None, "window_size": None, "qk_norm": "none", "rope": "none", "attn_bias": "none"}
    at = SimpleNamespace(num_heads=4, num_kv_heads=groups, channels=16, mask=mask, **plain)
    return layer.double().eval(), shapes, at


def hidden(lengths: Sequence[int] = LENGTHS) -> Tensor:
    """Return which tokens are padding, `[B, N]`."""
    return torch.arange(LONGEST) >= torch.tensor(lengths)[:, None]


def filled(x: Tensor, value: float) -> Tensor:
    """Return padded items `[B, …, N, X]` with a value as padding."""
    return x.masked_fill(hidden().view(len(x), *[1] * (x.ndim - 3), LONGEST, 1), value)


def in_a_row(x: Tensor, lengths: Sequence[int] = LENGTHS) -> Tensor:
    """Return the tokens of padded items one after the other, `[1, …, T, X]`."""
    return torch.cat([item[..., :length, :] for item, length in zip(x, lengths, strict=True)], dim=-2).unsqueeze(0)


def outputs(function: Any, xs: Sequence[Tensor]) -> list[Tensor]:
    """Return the real tokens of each item that an implementation computes for padded items."""
    if not packs(function):
        y = function(*xs, hidden())
        return [item[..., :length, :] for item, length in zip(y, LENGTHS, strict=True)]
    pack(function, LENGTHS, LONGEST, torch.device("cpu"))
    y = function(*map(in_a_row, xs))
    return [*y[0].split(LENGTHS, dim=-2)]


def by_documentation(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    *,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
) -> Tensor:
    """Return the result that the documentation of torch's varlen_attn describes, with loops: tensors are `[T, H, D]`.

    An item has the tokens between two positions, `window_size` says how many keys to the left and right a query sees.
    """
    assert [*cu_seq_q] == [*cu_seq_k]
    assert cu_seq_q.dtype == torch.int32
    assert max(cu_seq_q.diff()) <= max_q == max_k
    o, (left, right) = torch.zeros_like(query), window_size
    for begin, end in zip(cu_seq_q[:-1].tolist(), cu_seq_q[1:].tolist(), strict=True):
        for token in range(begin, end):
            first = begin if left < 0 else max(begin, token - left)
            last = end if right < 0 else min(end, token + right + 1)
            scores = torch.einsum("hd,thd->ht", query[token], key[first:last]) * (scale or query.shape[-1] ** -0.5)
            o[token] = torch.einsum("ht,thd->hd", scores.softmax(-1), value[first:last])
    return o


def documented(*arguments: Any, **keywords: Any) -> Tensor:
    """Return the same for a call that the installed torch supports."""
    inspect.signature(varlen_attn).bind(*arguments, **keywords)
    return by_documentation(*arguments, **keywords)


@pytest.fixture
def _varlen_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_check_varlen", lambda _: None)
    monkeypatch.setattr(packed, "varlen_attn", documented)


@pytest.mark.usefixtures("_varlen_is_there")
@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize("name", [*PADDED, *PACKED])
def test_outputs_and_gradients_are_those_of_each_item_alone(name: str, kind: str, mask: str) -> None:
    """Whatever the padding is and whichever items lie beside it, an item's output is that without both.

    So are the gradients of inputs and weights; the padding has none.
    """
    layer, shapes, at = made(kind, mask)
    if reason := REFUSED.get((name, kind)) or REFUSED.get((name, mask)):
        with pytest.raises(Unsupported, match=re.escape(reason)):
            outputs(impls.build(layer, name), [normal(*shape, dtype=torch.float64) for shape in shapes])
        return
    xs = [filled(normal(*shape, dtype=torch.float64), HUGE).requires_grad_() for shape in shapes]
    values = oracle.inputs(*map(array, xs)) | weights(layer)
    got = outputs(impls.build(layer, name), xs)
    for item, expected in zip(got, oracle.by_item(FORMULAS[kind], at, values, LENGTHS), strict=True):
        assert np.abs(array(item) - expected).max() < 10 * ROUNDING

    directions = [normal(*item.shape, dtype=torch.float64) for item in got]
    torch.autograd.backward(got, directions)

    def formula(values: oracle.Values) -> Array:
        rows = oracle.by_item(FORMULAS[kind], at, values, LENGTHS)
        return np.concatenate([row.flatten() for row in rows])

    whole = np.concatenate([array(each).flatten() for each in directions])
    tensors = {**{f"input {n}": x for n, x in enumerate(xs, 1)}, **dict(layer.named_parameters())}
    for tensor_name, tensor in tensors.items():
        direction = np.random.default_rng(1).normal(size=tensor.shape)
        slope = oracle.slope(formula, values, tensor_name, direction, whole)
        assert tensor.grad is not None
        size = float(tensor.grad.norm()) + 1.0
        assert abs(float((array(tensor.grad) * direction).sum()) - slope) < 100 * ROUNDING * size, tensor_name
    for x in xs:
        assert x.grad is not None
        assert torch.equal(x.grad, filled(x.grad, 0.0))


NO_MHA = ("mha", "mha_weights")

REFUSED = {
    ("nested", "causal"): "torch computes nested tensors with a causal mask only on a GPU",
    **{(name, "core"): "this implementation replaces the whole layer" for name in NO_MHA},
    **{(name, "grouped"): "nn.MultiheadAttention is used only for layers without context, bias" for name in NO_MHA},
}
"""The cases that a way can't compute, with the words of the refusal."""


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("fresh_compiler", "compiler")
@pytest.mark.parametrize(("kind", "mask"), [("core", "causal"), ("grouped", "none"), ("vit", "none")])
def test_flex_computes_each_item_alone(kind: str, mask: str) -> None:
    """In float32, its dtype on a CPU; another order of the items doesn't compile another graph."""
    layer, shapes, at = made(kind, mask)
    function = impls.build(layer.float(), "flex_packed")
    graphs = []
    for _ in range(2):
        xs = [filled(normal(*shape), HUGE) for shape in shapes]
        values = oracle.inputs(*map(array, xs)) | weights(layer)
        with torch.inference_mode():
            got = outputs(function, xs)
        for item, expected in zip(got, oracle.by_item(FORMULAS[kind], at, values, LENGTHS), strict=True):
            np.testing.assert_allclose(array(item), expected, atol=2e-5)
        graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_core_is_of_a_layer_with_lengths_and_without_a_bias(name: str) -> None:
    """The error line says why not."""
    for layer, words in (
        (SelfAttention(16, 16, 16), "which only core, attention and vit have"),
        (Core(8, 2, num_tokens=LONGEST, lengths="uniform", attn_bias="given"), "but the layer has a bias"),
    ):
        with pytest.raises(Unsupported, match=f"takes packed items, {words}"):
            impls.build(layer, name)


def test_varlen_is_of_a_gpu_and_of_half_types() -> None:
    """A line names the missing requirement, before torch fails."""
    layer, shapes, _ = made("core", "none")
    with pytest.raises(Unsupported, match=r"^torch\.nn\.attention\.varlen runs only on a GPU$"):
        outputs(impls.build(layer, "varlen"), [normal(*shape) for shape in shapes])
    q = torch.empty(1, device="meta")
    with pytest.raises(Unsupported, match=r"varlen needs bfloat16 or float16, got torch\.float32$"):
        packed._check_varlen(q)
