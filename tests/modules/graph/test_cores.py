"""The cores of a graph, and softmaxes that belong to none."""

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from bench.modules.graph.cores import UNFUSED, Core, Found, found
from bench.modules.graph.tracing import traced
from tests import written_cores
from tests.make.points import made
from tests.written_cores import BIAS, EXPRESSIBLE, HEADS, INEXPRESSIBLE, B, D, H, N, traced_layer


def found_in(module: nn.Module | Callable[..., Tensor], *xs: Tensor) -> Found:
    """Return what is found in the graph of a call."""
    return found(traced(module, xs))


def found_in_written(kind: str) -> Found:
    """Return what is found in the graph of a layer with a hand-written core."""
    return found(traced_layer(kind)[2])


@pytest.mark.parametrize("kind", EXPRESSIBLE)
def test_a_core_that_attention_can_express_is_found(kind: str) -> None:
    """It is the only one, and no softmax is left."""
    seen = found_in_written(kind)
    (core,) = seen.cores
    assert (core.operator, core.obstacle, seen.unknown) == (UNFUSED, "", ())
    assert core.class_name == "Written"


@pytest.mark.parametrize("kind", [kind for kind, (_, reason) in INEXPRESSIBLE.items() if kind != "dropout" and reason])
def test_what_attention_cannot_express_has_its_operator_and_its_line(kind: str) -> None:
    """The line is one of the core's own or of the function that returns its scores; if weights are used is known."""
    (core, reason), seen = INEXPRESSIBLE[kind], found_in_written(kind)
    assert any(each.weights_are_used for each in seen.cores) == (kind == "used later")
    (said, *_) = [each.reason for each in seen.unknown] or [each.obstacle for each in seen.cores]
    assert reason in said
    name, _, number = said.rpartition(" at ")[2].rpartition(":")
    assert name.endswith("written_cores.py")
    assert int(number) in lines_of(core)


def lines_of(core: Callable[..., Tensor]) -> set[int]:
    """Return the numbers of a core's lines, and of the helper's that it may call; of a lambda those around its own."""
    every: tuple[Any, ...] = (core, written_cores.scores_of, written_cores.soft_cap)
    return {start + place for source, start in map(inspect.getsourcelines, every) for place in range(len(source) + 2)}


def test_other_weights_than_those_of_a_softmax_are_nothing() -> None:
    """Dropout belongs to a core, as a keyword that an attend may declare."""
    assert found_in_written("dropout").cores[0].dropout == 0.5
    model = made("tests.tiny_models:plain[input=1x5x16]")
    without = found_in(model, torch.randn(3, *model.items[0])), found_in_written("relu"), found_in_written("no softmax")
    assert {*without} == {Found((), ())}


def banded(x: Tensor) -> Tensor:
    """Return attention of each token and the one before, of two products."""
    before = torch.cat([x[:, :1], x[:, :-1]], 1)
    scores = torch.cat([x[:, :, None] @ x[:, :, None].mT, x[:, :, None] @ before[:, :, None].mT], -1)
    return (scores.softmax(-1) @ torch.stack([x, before], 2))[:, :, 0]


def of_pairs(x: Tensor) -> Tensor:
    """Return attention whose scores are products and sums."""
    bias = x[:, :, None, 0] + x[:, None, :, 1]
    return ((x @ x.mT).tanh() + bias).softmax(-1) @ x


def of_own_keys(x: Tensor) -> Tensor:
    """Return attention to a neighbourhood that is gathered for each query."""
    own = x[:, NEAR]
    return torch.einsum("bnm,bnmd->bnd", torch.einsum("bnd,bnmd->bnm", x, own).softmax(-1), own)


def mixed(x: Tensor, *, before: bool) -> Tensor:
    """Return attention whose heads are mixed after the softmax, and before it too."""
    q = x.view(B, H, N // H, D)
    scores = torch.einsum("bhij,hg->bgij", q @ q.mT, HEADS) if before else q @ q.mT
    return torch.einsum("bhij,hg->bgij", scores.softmax(-1), HEADS) @ q


def differential(x: Tensor) -> Tensor:
    """Subtract some weights from others."""
    first, second = (x @ x.mT).softmax(-1).chunk(2)
    return (first - second) @ x[:2]


NEAR = (torch.arange(N)[:, None] + torch.arange(N)) % N

PAIRS = torch.randn(2 * D, 1)
ROUTER, GATE, EXPERTS = nn.Linear(D, D), nn.Linear(D, 4), torch.randn(4, D)

OTHERS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "a router of experts": (lambda x: ROUTER(x).topk(2).values.softmax(-1), "a layer's output"),
    "weights of parameters": (lambda x: GATE(x).softmax(-1) @ EXPERTS, "a layer's output"),
    "a weight of channels": (lambda x: (x + PAIRS[0]).softmax(-1) * x, "over no product"),
    "a gate of places": (lambda x: F.linear(x + BIAS[0, 0, :, :1], PAIRS[:D].T).softmax(1) * x, "a layer's output"),
    "scores with sums": (of_pairs, "tanh"),
    "keys of one query": (of_own_keys, "keys or values of its own"),
    "mixed scores": (lambda x: mixed(x, before=True), "weights of parameters"),
    "mixed weights": (lambda x: mixed(x, before=False), "weights of parameters"),
    "difference of weights": (differential, "no product with values"),
    "parts of a window": (banded, "another size"),
}
"""Functions of tokens, and what their softmax is in place of a core's."""


@pytest.mark.parametrize("kind", OTHERS)
def test_a_softmax_that_belongs_to_no_core_has_a_reason(kind: str) -> None:
    """Gates aren't attention, sums of other things no additive attention; the first product that mixes heads counts."""
    function, reason = OTHERS[kind]
    seen = found_in(function, torch.randn(B, N, D))
    assert seen.cores == ()
    (softmax,) = seen.unknown
    assert reason in softmax.reason


@pytest.mark.parametrize(
    ("kind", "masks", "causal"),
    [
        ("plain", [], False),
        ("bias", ["given"], False),
        ("causal", ["causal"], True),
        ("causal that is added", ["causal"], True),
        ("boolean mask", ["padding"], False),
        ("mask of ones", ["padding"], False),
        ("bias and boolean mask", ["given", "padding"], False),
        ("two boolean masks", ["other"], False),
    ],
)
def test_masks_have_kinds(kind: str, masks: list[str], causal: bool) -> None:
    """A mask that is there alone and hides later keys makes the core causal."""
    (core,) = found_in_written(kind).cores
    assert [mask.kind for mask in core.masks] == masks
    assert core.causal == causal
    assert core.mask == " + ".join(map(str, core.masks))


def test_a_learned_bias_is_learned_where_gradients_are_computed() -> None:
    """Without gradients it is a given one."""
    layer, x, _ = traced_layer("learned bias")
    with torch.no_grad():
        (given,) = found_in(layer, x).cores
    (learned,) = found_in_written("learned bias").cores
    assert [mask.kind for mask in given.masks + learned.masks] == ["given", "learned"]


@pytest.mark.parametrize("kind", ["three dimensions", "einsum", "plain"])
def test_shapes_are_those_of_heads(kind: str) -> None:
    """Whatever the order of the scores' dimensions; without a dimension of heads there is one."""
    (core,) = found_in_written(kind).cores
    assert core.shapes == ((B, H, N, D),) * 3


def test_a_core_is_a_value_of_facts() -> None:
    """Nodes of the graph are no part of it."""
    (core,) = found_in_written("bias").cores
    facts = dataclasses.asdict(core)
    assert facts["lines"].startswith(f"{written_cores.__file__}:")
    assert Core(**{**facts, "masks": core.masks}) == core


def test_fused_cores_are_found() -> None:
    """They have shapes, strides and the module that they belong to."""
    model = made("tests.tiny_models:Net[kind=causal,input=1x5x16]")
    first, second = found_in(model, torch.randn(3, *model.items[0])).cores
    assert (first.layer, second.layer, first.class_name) == ("inner.layers.0", "inner.layers.1", "Attention")
    assert first.shapes == ((3, 2, 5, 8),) * 3
    assert first.strides == ((240, 8, 48, 1),) * 3
    assert first.by_sdpa
    assert first.is_fused
    assert (first.causal, first.dropout, first.dtype) == (True, 0.0, "float32")


def test_layers_of_torch_are_seen_inside() -> None:
    """Their fast path would be one operator."""
    for name in ("Encoder[input=1x5x16]", "Heads[input=1x5x16]"):
        model = made(f"tests.tiny_models:{name}").eval()
        seen = found_in(model, torch.randn(3, *model.items[0]))
        assert seen.cores
        assert seen.unknown == ()


def by_hand(scores: Tensor, *, more: float = 0.0) -> Tensor:
    """Return a softmax of several operators, or weights whose sum is less than 1."""
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / (more + weights.sum(-1, keepdim=True))


def by_hand_over_some(scores: Tensor) -> Tensor:
    """Return exponentials that are divided by another sum."""
    weights = scores.exp()
    return weights * 2 / (weights * 2).sum(-1, keepdim=True)


@pytest.mark.parametrize(
    ("softmax", "cores"),
    [
        (by_hand, 0),
        (partial(by_hand, more=1.0), 0),
        (by_hand_over_some, 0),
        (lambda scores: (scores - scores.amax(-2, keepdim=True)).softmax(-1), 0),
        (lambda scores: F.softmax(scores, -1), 1),
    ],
)
def test_a_softmax_by_hand_must_be_one(softmax: Callable[[Tensor], Tensor], cores: int) -> None:
    """Numbers that are the same for all keys of a query may be subtracted before, nothing be added to the sum."""
    q, k, v = torch.randn(3, 2, 2, 5, 8)
    assert len(found_in(lambda q, k, v: softmax(q @ k.mT) @ v, q, k, v).cores) == cores


def repeated(q: Tensor, k: Tensor, v: Tensor, repeat: Callable[[Tensor], Tensor]) -> Tensor:
    """Return attention whose heads of keys are repeated."""
    return EXPRESSIBLE["plain"](q, repeat(k), repeat(v))


Shapes = list[tuple[int, ...]]

GROUPS: Shapes = [(2, 6, 5, 8), (2, 2, 5, 8), (2, 2, 5, 8)]
"""Three heads of queries for each of keys."""

PLAIN, FLAT = EXPRESSIBLE["plain"], EXPRESSIBLE["three dimensions"]

SHAPES: dict[str, tuple[Callable[..., Tensor], Shapes, Shapes]] = {
    "one item": (PLAIN, [(1, H, N, D)] * 3, [(1, H, N, D)] * 3),
    "one item, flat": (FLAT, [(1, H, N, D)] * 3, [(1, H, N, D)] * 3),
    "one dimension": (PLAIN, [(H, N, D)] * 3, [(H, 1, N, D)] * 3),
    "a learned query": (
        lambda x: (nn.Parameter(torch.ones(3, 8)) @ x.mT).softmax(-1) @ x,
        [(2, 5, 8)],
        [(2, 1, 3, 8), (2, 1, 5, 8), (2, 1, 5, 8)],
    ),
    "neighbours": (partial(repeated, repeat=lambda x: x.repeat_interleave(3, 1)), GROUPS, [(2, 6, 5, 8)] * 3),
    "another order": (partial(repeated, repeat=lambda x: x.repeat(1, 3, 1, 1)), GROUPS, [(2, 6, 5, 8)] * 3),
}
"""Functions, the shapes of their inputs, and those of queries, keys and values."""


@pytest.mark.parametrize("kind", SHAPES)
def test_shapes_show_heads_as_far_as_the_graph_does(kind: str) -> None:
    """Heads of one item are heads, one dimension alone is of items; repeated keys are as many as queries."""
    function, inputs, shapes = SHAPES[kind]
    (core,) = found_in(function, *map(torch.randn, inputs)).cores
    assert [*core.shapes] == shapes


def test_several_products_of_one_softmax_are_cores() -> None:
    """Each has the same weights and values of its own."""

    def both(q: Tensor, v: Tensor) -> Tensor:
        weights = (q @ q.mT).softmax(-1)
        return weights @ v + weights @ q

    seen = found_in(both, *torch.randn(2, 2, 2, 5, 8))
    assert [core.obstacle for core in seen.cores] == ["", ""]
