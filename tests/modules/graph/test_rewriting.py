"""Graphs whose cores are computed by an attend."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench.modules.graph.rewriting import Rewritten, rewritten
from bench.modules.graph.tracing import name, traced
from impls.attend import sdpa
from impls.contract import Unsupported
from tests import written_cores
from tests.written_cores import EXPRESSIBLE, INEXPRESSIBLE, B, D, H, N, Written, traced_layer

OUTPUT_OFF = {torch.float64: 1e-13, torch.bfloat16: 4e-2}
"""By how much of the largest value an output may be off, for each type."""


GRADIENT_OFF = {torch.float64: 1e-11, torch.bfloat16: 1e-1}

ROUNDED = {"in float32", "alibi"}
"""The cores that compute in float32 for any inputs."""

ROUNDED_OFF = 1e-6


def off(y: Tensor, expected: Tensor) -> float:
    """Return by how much of the largest expected value a tensor is off at most."""
    y, expected = y.detach().double(), expected.detach().double()
    return float((y - expected).abs().max() / expected.abs().max().clamp_min(1e-6))


BESIDE = nn.Linear(D, D)


def three_outputs(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a core's output and two that don't count: another layer's, and the mean of weights."""
    weights = (x @ x.mT).softmax(-1)
    return weights @ x, BESIDE(x).sigmoid(), weights.mean(1)


def test_outputs_that_do_not_count_are_computed_all_the_same() -> None:
    """They are computed as in the module, except those that need the weights, which another core lacks."""
    new = rewritten(traced(three_outputs, (torch.randn(B, N, D),)), sdpa.attend)
    names = [name(node) for node in new.module.graph.nodes]
    assert "sigmoid" in names
    assert not {"softmax", "mean"} & {*names}


FLOAT32 = {"causal that is added", "learned number", "mask of ones"}
"""The cores that make numbers of this type, and can't have a smaller one."""

OF_TYPES = [
    (kind, dtype) for kind in EXPRESSIBLE for dtype in OUTPUT_OFF if dtype == torch.float64 or kind not in FLOAT32
]


@pytest.mark.parametrize(("kind", "dtype"), OF_TYPES)
def test_a_rewritten_core_computes_the_same(kind: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """At another input, in inference and with gradients: in float64 nothing is off, so the core was understood."""
    learned = of_type(dtype, monkeypatch)
    torch.manual_seed(0)
    model, x, other = Written(kind).to(dtype), *torch.randn(2, B, N, H * D, dtype=dtype)
    graph = traced(model, (2 * x,))
    most = ROUNDED_OFF if kind in ROUNDED and dtype == torch.float64 else 0.0
    new = rewritten(graph, sdpa.attend)
    assert (len(new.replaced), new.left, new.unknown) == (1, (), ())
    assert sum(node.target is sdpa.attend for node in new.module.graph.nodes) == 1
    assert not any("softmax" in name(node) for node in new.module.graph.nodes)
    for each in (2 * x, 3 * other):
        with torch.inference_mode():
            assert off(new.module(each), model(each)) < max(most, OUTPUT_OFF[dtype])
    gradients = off_by_gradients(new.module, model, 2 * x, [*model.parameters(), *learned])
    assert gradients < max(most, GRADIENT_OFF[dtype])


def of_type(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Give the constants of hand-written cores a type; return the parameters among them."""
    learned: list[Tensor] = []
    for key, value in [*vars(written_cores).items()]:
        if isinstance(value, Tensor) and value.is_floating_point():
            new = value.detach().to(dtype).requires_grad_(value.requires_grad)
            monkeypatch.setattr(written_cores, key, nn.Parameter(new) if isinstance(value, nn.Parameter) else new)
            learned += [getattr(written_cores, key)] if value.requires_grad else []
    return learned


def off_by_gradients(new: nn.Module, model: nn.Module, x: Tensor, learned: list[Tensor]) -> float:
    """Return the errors of gradients of the input and the parameters, relative to the largest."""
    inputs = [x.clone().requires_grad_(True), *learned]
    weights = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x)
    every = [torch.autograd.grad(of(inputs[0]), inputs, weights, allow_unused=True) for of in (new, model)]
    assert [each is None for each in every[0]] == [each is None for each in every[1]]
    ours, theirs = (torch.cat([each.flatten() for each in of if each is not None]) for of in every)
    return off(ours, theirs)


@pytest.mark.parametrize("kind", INEXPRESSIBLE)
def test_what_cannot_be_expressed_is_refused(kind: str) -> None:
    """With the reason; nothing is computed in its place."""
    with pytest.raises(Unsupported, match=r"can't be replaced: .*written_cores\.py:|no attention core"):
        rewritten(traced_layer(kind)[2], sdpa.attend)


def test_a_graph_itself_is_not_changed() -> None:
    """Its copy is rewritten, and shares the parameters."""
    model, _, graph = traced_layer("bias")
    before = graph.module.code
    new = rewritten(graph, sdpa.attend)
    assert graph.module.code == before
    graph.module.recompile()
    assert graph.module.code == before
    assert {*map(id, new.module.parameters())} == {*map(id, model.parameters())}


def plain(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return attention without any keyword."""
    return (q * scale @ k.mT).softmax(-1) @ v


def test_an_attend_is_asked_for_what_it_declares_alone() -> None:
    """A mask that it doesn't take is the reason; heads of keys are repeated for it."""
    with pytest.raises(Unsupported, match="attn_mask"):
        rewritten(traced_layer("bias")[2], plain)
    q, k = torch.randn(2, 6, 5, 8), torch.randn(2, 2, 5, 8)

    def grouped(q: Tensor, k: Tensor) -> Tensor:
        k = k.repeat_interleave(3, 1)
        return (q @ k.mT).softmax(-1) @ k

    assert off(rewritten(traced(grouped, (q, k)), plain).module(q, k), grouped(q, k)) < 1e-5


def asked_of(kind: str) -> dict[str, Any]:
    """Return the keywords by which a hand-written core calls an attend."""
    _, x, graph = traced_layer(kind)
    asked: dict[str, Any] = {}

    def attend(
        q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None, attn_mask: Any = None
    ) -> Tensor:
        asked.update(mask=mask, attn_mask=attn_mask)
        return sdpa.attend(q, k, v, scale, mask=mask, attn_mask=attn_mask)

    rewritten(graph, attend).module(x)
    return asked


@pytest.mark.parametrize("kind", ["causal", "causal that is added"])
def test_a_constant_causal_mask_is_a_keyword(kind: str) -> None:
    """A kernel may then skip keys that no query sees; other masks are a tensor, one number where they are broadcast."""
    assert asked_of(kind) == {"mask": "causal", "attn_mask": None}
    assert asked_of("bias")["attn_mask"].shape == (1, H, N, N)
    assert asked_of("plain") == {"mask": None, "attn_mask": None}


def test_some_cores_may_be_left() -> None:
    """They are named with their reasons, and compute as before."""

    def two(x: Tensor) -> Tensor:
        x = (x @ x.mT).softmax(-1) @ x
        return (x @ x.mT).softmax(-1).square() @ x + used(x)

    def used(x: Tensor) -> Tensor:
        weights = (x @ x.mT).softmax(-1)
        return weights @ x * weights.amax(-1, keepdim=True)

    x = torch.randn(2, 5, 8)
    new: Rewritten = rewritten(traced(two, (x,)), sdpa.attend)
    assert len(new.replaced) == 1
    assert ["used again" in reason for _, reason in new.left] == [True]
    assert off(new.module(x), two(x)) < 1e-5


def operand_changed_later(x: Tensor) -> Tensor:
    """Change the queries in place before the second product."""
    q = x * 1
    weights = (q @ x.mT).softmax(-1)
    q.mul_(2)
    return weights @ x + q


def mask_in_parts(x: Tensor, *, is_changed: bool = False) -> Tensor:
    """Fill a mask in parts, and change it after it is used too."""
    mask = torch.zeros(5, 5)
    mask[:, 3:] = float("-inf")
    weights = (x @ x.mT + mask).softmax(-1)
    if is_changed:
        mask[:] = 0
    return weights @ x + mask.sum(0)[0]


@pytest.mark.parametrize("function", [operand_changed_later, mask_in_parts, partial(mask_in_parts, is_changed=True)])
def test_memory_that_is_changed_is_read_as_the_module_reads_it(function: Callable[[Tensor], Tensor]) -> None:
    """The core is refused, or computes the same."""
    x = torch.randn(2, 5, 8)
    graph = traced(function, (x,))
    assert off(graph.module(x), function(x)) == 0
    try:
        new = rewritten(graph, sdpa.attend)
    except Unsupported as reason:
        assert "in place" in str(reason)  # noqa: PT017 - either is right
    else:
        assert off(new.module(x), function(x)) < 1e-5


@torch.library.custom_op("bench_tests::softmax", mutates_args=())
def hidden(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return attention by an operator into which nothing sees."""
    return (q @ k.mT).softmax(-1) @ v


def test_an_operator_of_another_library_is_named_with_it() -> None:
    """Its own name may be one of torch's, and means nothing."""
    with torch.no_grad(), pytest.raises(Unsupported, match=r"bench_tests::softmax.* at .*test_rewriting\.py:[0-9]+"):
        rewritten(traced(lambda x: hidden(x, x, x), (torch.randn(2, 5, 8),)), sdpa.attend)
