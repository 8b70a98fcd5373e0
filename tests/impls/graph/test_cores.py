"""The cores of a graph, and softmaxes that belong to none."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls.graph.cores import UNFUSED, Core, Found, found
from impls.graph.tracing import traced
from tests import written_cores
from tests.make.points import made
from tests.written_cores import BIAS, CAUSAL, EXPRESSIBLE, HEADS, INEXPRESSIBLE, B, D, H, N, Written


def found_in(module: nn.Module | Callable[..., Tensor], *xs: Tensor) -> Found:
    """Return what is found in the graph of a call."""
    return found(traced(module, xs))


def found_in_written(kind: str) -> Found:
    """Return what is found in the graph of a layer with a hand-written core."""
    torch.manual_seed(0)
    return found_in(Written(kind), torch.randn(B, N, H * D))


@pytest.mark.parametrize("kind", EXPRESSIBLE)
def test_a_core_that_attention_can_express_is_found(kind: str) -> None:
    """It is the only one, and no softmax is left."""
    seen = found_in_written(kind)
    (core,) = seen.cores
    assert (core.operator, core.obstacle, seen.unknown) == (UNFUSED, "", ())
    assert core.class_name == "Written"


def test_heads_of_a_single_item_are_heads() -> None:
    """Also if items and heads are one dimension at the product; one dimension alone is one of items."""
    q = torch.randn(1, H, N, D)
    shapes = [found_in(EXPRESSIBLE[kind], q, q, q).cores[0].shapes[0] for kind in ("plain", "three dimensions")]
    assert shapes == [(1, H, N, D)] * 2
    assert found_in(EXPRESSIBLE["plain"], q[0], q[0], q[0]).cores[0].shapes[0] == (H, 1, N, D)


def test_a_softmax_over_chosen_outputs_of_a_layer_is_a_gate() -> None:
    """A router of experts takes the largest outputs of a layer."""
    layer = nn.Linear(D, D)
    (softmax,) = found_in(lambda x: layer(x).topk(2).values.softmax(-1), torch.randn(N, D)).unknown
    assert "a gate" in softmax.reason


REFUSED = {
    "soft cap": "tanh",
    "high soft cap": "tanh",
    "cap": "clamp",
    "gate": "mul on the weights",
    "gate of ones": "mul on the weights",
    "gate of scores": "mul: a factor that differs from key to key",
    "gate by itself": "mul: a factor that differs from key to key",
    "weight of heads": "mul on the weights",
    "threshold": "lt on the weights",
    "top-k": "topk",
    "top-k, scattered": "topk",
    "talking heads": "scores of heads are mixed",
    "slots": "div on the weights",
    "normalised again": "div on the weights",
    "over queries": "another dimension",
    "power": "square on the weights",
    "two softmaxes": "a second softmax",
    "mask that hides little": "masked_fill by -5",
    "weights without some": "masked_fill on the weights",
    "some scores alone": "a change of some scores in place",
    "used later": "its weights are used again",
    "difference": "on the weights",
}
"""What is in the way of cores that attention can't express."""


@pytest.mark.parametrize(("kind", "reason"), REFUSED.items())
def test_what_attention_cannot_express_has_its_operator_and_its_line(kind: str, reason: str) -> None:
    """The line is one of the core's own or of the function that returns its scores."""
    seen = found_in_written(kind)
    (said, *_) = [each.reason for each in seen.unknown] or [core.obstacle for core in seen.cores]
    assert reason in said
    name, _, number = said.rpartition(" at ")[2].rpartition(":")
    assert name.endswith("written_cores.py")
    assert int(number) in lines_of(INEXPRESSIBLE[kind][0])


def lines_of(core: Callable[..., Tensor]) -> set[int]:
    """Return the numbers of a core's lines, and of the helper's that it may call; of a lambda those around its own."""
    every: tuple[Any, ...] = (core, written_cores.scores_of, written_cores.soft_cap)
    return {start + place for source, start in map(inspect.getsourcelines, every) for place in range(len(source) + 2)}


def test_every_core_that_attention_cannot_express_is_tried() -> None:
    """Dropout is a keyword that an attend may declare, and two have no softmax."""
    assert {*INEXPRESSIBLE} - {*REFUSED} == {"dropout", "no softmax", "relu"}
    assert found_in_written("dropout").cores[0].dropout == 0.5
    assert found_in_written("relu") == found_in_written("no softmax") == Found((), ())


def added(how: str, x: Tensor) -> Tensor:
    """Return attention by sums, as layers of graphs write it."""
    n = x.shape[1]
    if how == "cat":
        pairs = torch.cat([x[:, :, None].expand(-1, -1, n, -1), x[:, None].expand(-1, n, -1, -1)], -1)
        scores = pairs @ PAIRS
    elif how == "layer":
        pairs = torch.cat([x.repeat_interleave(n, 1), x.repeat(1, n, 1)], -1)
        scores = F.linear(pairs, PAIRS.T).view(len(x), n, n, 1)
    elif how == "products":
        scores = (x @ PAIRS[:D])[:, :, None] + (x @ PAIRS[D:])[:, None]
    else:
        scores = ((x * PAIRS[:D, 0]).sum(-1)[:, :, None] + (x * PAIRS[D:, 0]).sum(-1)[:, None])[..., None]
    return F.leaky_relu(scores.squeeze(-1), 0.2).masked_fill(~CAUSAL, -9e15).softmax(-1) @ x


PAIRS = nn.Parameter(torch.randn(2 * D, 1))


@pytest.mark.parametrize("how", ["cat", "layer", "products", "sums"])
def test_additive_attention_is_named_alike_however_it_is_written(how: str) -> None:
    """Its scores are sums, at a line of its own."""
    (softmax,) = found_in(lambda x: added(how, x), torch.randn(B, N, D)).unknown
    assert "additive attention" in softmax.reason
    assert int(softmax.reason.rpartition(":")[2]) in lines_of(added)


@pytest.mark.parametrize("how", ["one", "a layer", "positions"])
def test_sums_of_other_things_are_no_additive_attention(how: str) -> None:
    """Neither a gate of tokens with positions, nor what is added to products."""

    def other(x: Tensor) -> Tensor:
        if how == "one":
            return (x + PAIRS[0]).softmax(-1) * x
        if how == "a layer":
            return F.linear(x + BIAS[0, 0, :, :1], PAIRS[:D].T).softmax(1) * x
        bias = x[:, :, None, 0] + x[:, None, :, 1]
        return ((x @ x.mT).tanh() + bias).softmax(-1) @ x

    (softmax,) = found_in(other, torch.randn(B, N, D)).unknown
    assert "additive" not in softmax.reason


@pytest.mark.parametrize(("gathered", "what"), [("k", "keys"), ("v", "values")])
def test_keys_and_values_of_one_query_are_named(gathered: str, what: str) -> None:
    """A neighbourhood is gathered for each query."""
    near = (torch.arange(N)[:, None] + torch.arange(N)) % N

    def layer(x: Tensor) -> Tensor:
        own = x[:, near]
        scores = torch.einsum("bnd,bnmd->bnm", x, own) if gathered == "k" else x @ x.mT
        return torch.einsum("bnm,bnmd->bnd", scores.softmax(-1), own)

    (softmax,) = found_in(layer, torch.randn(B, N, D)).unknown
    assert f"each query has {what} of its own" in softmax.reason


@pytest.mark.parametrize(("before", "what"), [(True, "scores"), (False, "weights")])
def test_heads_that_are_mixed_are_named(*, before: bool, what: str) -> None:
    """By the first product that mixes them, and not by those after it."""

    def layer(x: Tensor) -> Tensor:
        q = x.view(B, H, N, D)
        scores = q @ q.mT
        if before:
            scores = torch.einsum("bhij,hg->bgij", scores, HEADS)
        return torch.einsum("bhij,hg->bgij", scores.softmax(-1), HEADS) @ q

    (softmax,) = found_in(layer, torch.randn(B, H * N, D)).unknown
    assert softmax.reason.startswith(f"{what} of heads are mixed")


def test_weights_that_are_taken_apart_are_no_scores() -> None:
    """A differential layer subtracts some of its weights from others."""

    def layer(x: Tensor) -> Tensor:
        first, second = (x @ x.mT).softmax(-1).chunk(2)
        return (first - second) @ x[:2]

    (softmax,) = found_in(layer, torch.randn(B, N, D)).unknown
    assert "some weights apart" in softmax.reason


def test_weights_that_are_used_again_are_named() -> None:
    """The core is known, and why it can't be replaced."""
    (core,) = found_in_written("used later").cores
    assert core.weights_are_used
    assert core.obstacle


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
        ("two boolean masks", ["padding", "causal"], False),
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
    with torch.no_grad():
        (given,) = found_in_written("learned bias").cores
    (learned,) = found_in_written("learned bias").cores
    assert [mask.kind for mask in given.masks + learned.masks] == ["given", "learned"]


@pytest.mark.parametrize("kind", ["heads last", "queries on the right", "three dimensions", "einsum", "plain"])
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


def test_a_model_without_softmax_has_nothing() -> None:
    """Neither a core nor a softmax that belongs to none."""
    model = made("tests.tiny_models:plain[input=1x5x16]")
    assert found_in(model, torch.randn(3, *model.items[0])) == Found((), ())


def test_a_gate_is_no_attention() -> None:
    """A softmax over a layer's output that weighs parameters."""
    layer, experts = nn.Linear(8, 4), torch.randn(4, 8)
    seen = found_in(lambda x: layer(x).softmax(-1) @ experts, torch.randn(2, 5, 8))
    assert seen.cores == ()
    assert "a gate" in seen.unknown[0].reason


def test_a_learned_query_is_attention() -> None:
    """Queries may be a parameter."""
    query = nn.Parameter(torch.randn(3, 8))
    (core,) = found_in(lambda x: (query @ x.mT).softmax(-1) @ x, torch.randn(2, 5, 8)).cores
    assert core.shapes == ((2, 1, 3, 8), (2, 1, 5, 8), (2, 1, 5, 8))


def softmax_one(scores: Tensor) -> Tensor:
    """Return weights whose sum is less than 1."""
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / (1 + weights.sum(-1, keepdim=True))


def by_hand(scores: Tensor) -> Tensor:
    """Return a softmax of several operators."""
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def by_hand_over_some(scores: Tensor) -> Tensor:
    """Return exponentials that are divided by another sum."""
    weights = scores.exp()
    return weights * 2 / (weights * 2).sum(-1, keepdim=True)


def over_columns(scores: Tensor) -> Tensor:
    """Return weights after another number was subtracted for each key."""
    return (scores - scores.amax(-2, keepdim=True)).softmax(-1)


@pytest.mark.parametrize(
    ("softmax", "cores"),
    [(by_hand, 1), (softmax_one, 0), (by_hand_over_some, 0), (over_columns, 0), (lambda s: F.softmax(s, -1), 1)],
)
def test_a_softmax_by_hand_must_be_one(softmax: Callable[[Tensor], Tensor], cores: int) -> None:
    """Numbers that are the same for all keys of a query may be subtracted before, nothing be added to the sum."""
    q, k, v = torch.randn(3, 2, 2, 5, 8)
    assert len(found_in(lambda q, k, v: softmax(q @ k.mT) @ v, q, k, v).cores) == cores


@pytest.mark.parametrize(
    "repeat",
    [
        lambda x: x.repeat_interleave(3, 1),
        lambda x: x[:, :, None].expand(-1, -1, 3, -1, -1).reshape(2, 6, 5, 8),
    ],
)
def test_keys_are_those_before_their_heads_were_repeated(repeat: Callable[[Tensor], Tensor]) -> None:
    """Each for a group of neighbours among the heads of queries; heads that are repeated in another order stay."""
    q, k, v = torch.randn(2, 6, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    for own, heads in ((repeat, 2), (lambda x: x.repeat(1, 3, 1, 1), 6)):
        (core,) = found_in(lambda q, k, v, own=own: (q @ own(k).mT).softmax(-1) @ own(v), q, k, v).cores
        assert core.shapes == ((2, 6, 5, 8), (2, heads, 5, 8), (2, heads, 5, 8))


def test_several_products_of_one_softmax_are_cores() -> None:
    """Each has the same weights and values of its own."""
    q, k, v, w = torch.randn(4, 2, 2, 5, 8)

    def both(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
        weights = (q @ k.mT).softmax(-1)
        return weights @ v + weights @ w

    seen = found_in(both, q, k, v, w)
    assert [core.obstacle for core in seen.cores] == ["", ""]
