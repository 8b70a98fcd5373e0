"""The cores of a graph, and softmaxes that belong to none."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

from bench.modules.graph.cores import Found, found, look
from tests import written_cores
from tests.make.points import made
from tests.written_cores import EXPRESSIBLE, INEXPRESSIBLE, B, D, H, N, traced_layer


def found_in(module: nn.Module | Callable[..., Tensor], *xs: Tensor) -> Found:
    """Return the findings in the graph of a call."""
    return look(module, xs)


def found_in_written(kind: str) -> Found:
    """Return the findings in the graph of a layer with a hand-written core."""
    return found(traced_layer(kind)[2])


@pytest.mark.parametrize("kind", [kind for kind, (_, reason) in INEXPRESSIBLE.items() if kind != "dropout" and reason])
def test_what_attention_cannot_express_has_its_operator_and_its_line(kind: str) -> None:
    """The line is one of the core's own or of the function that returns its scores."""
    (core, reason), seen = INEXPRESSIBLE[kind], found_in_written(kind)
    (said, *_) = [each.softmax.reason for each in seen.unknown] or [site.core.obstacle for site in seen.cores]
    assert reason in said
    name, _, number = said.partition(";")[0].rpartition(" at ")[2].rpartition(":")
    assert name.endswith("written_cores.py")
    assert int(number) in lines_of(core)


def lines_of(core: Callable[..., Tensor]) -> set[int]:
    """Return the numbers of a core's lines, and of the helper's that it may call; of a lambda those around its own."""
    every: tuple[Any, ...] = (core, written_cores.scores_of, written_cores.soft_cap)
    return {start + place for source, start in map(inspect.getsourcelines, every) for place in range(len(source) + 2)}


def test_a_layer_without_a_softmax_has_no_core() -> None:
    """Nor a softmax of no core; an exp between two products is one, unless they are of weights."""
    model = made("tests.tiny_models:plain[input=1x5x16]")
    gate = found_in(lambda x: (x @ EXPERTS.mT).exp() @ EXPERTS, torch.randn(B, N, D))
    plain = found_in(model, torch.randn(3, *model.items[0]))
    for seen in (gate, plain, *map(found_in_written, ("relu", "no softmax"))):
        assert (seen.cores, seen.unknown) == ((), ())


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


NEAR = (torch.arange(N)[:, None] + torch.arange(N)) % N

PAIRS = torch.randn(2 * D, 1)
ROUTER, GATE, EXPERTS = nn.Linear(D, D), nn.Linear(D, 4), torch.randn(4, D)


def with_more(x: Tensor, *, more: Callable[[Tensor], Tensor]) -> Tensor:
    """Return attention whose softmax has one score more, as a sink."""
    return more(x @ x.mT).softmax(-1)[..., :N] @ x


def copied(x: Tensor) -> Tensor:
    """Copy scores into a larger tensor."""
    scores = torch.full((len(x), N, N + 1), -1e9)
    scores[..., :N] = x @ x.mT
    return scores.softmax(-1)[..., :N] @ x


def by_hand(x: Tensor) -> Tensor:
    """Return attention by weights whose sum is less than 1, of scores minus their maximum."""
    scores = x @ x.mT
    most = scores.amax(-1, keepdim=True)
    weights = (scores - most).exp()
    return weights / ((-most).exp() + weights.sum(-1, keepdim=True)) @ x


def of_other_maximum(x: Tensor) -> Tensor:
    """Subtract the largest score of each key."""
    scores = x @ x.mT
    return (scores - scores.amax(-2, keepdim=True)).softmax(-1) @ x


OTHERS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "a router of experts": (lambda x: ROUTER(x).topk(2).values.softmax(-1), "a layer's output"),
    "weights of parameters": (lambda x: GATE(x).softmax(-1) @ EXPERTS, "a layer's output"),
    "a weight of channels": (lambda x: (x + PAIRS[0]).softmax(-1) * x, "over no product"),
    "scores with sums": (of_pairs, "tanh"),
    "keys of one query": (of_own_keys, "different keys or values for each query"),
    "parts of a window": (banded, "which changes the number of scores"),
    "a sink": (partial(with_more, more=lambda s: torch.concat([s, torch.zeros_like(s[..., :1])], -1)), "concat, which"),
    "a padded sink": (partial(with_more, more=lambda s: F.pad(s, (0, 1))), "pad, which changes"),
    "copied scores": (copied, "an in-place change of some scores"),
    "a softmax by hand": (by_hand, "call softmax instead, unless its sum has more in it"),
    "a sink by hand": (lambda x: F.pad(x @ x.mT, (0, 1)).exp2()[..., :N] @ x, "an exp between two products"),
    "another maximum": (of_other_maximum, "sub"),
}  # fmt: skip
"""Functions of tokens, and what their softmax is in place of a core's."""


@pytest.mark.parametrize("kind", OTHERS)
def test_a_softmax_that_belongs_to_no_core_has_a_reason(kind: str) -> None:
    """A gate isn't attention, and a sink isn't a window."""
    function, reason = OTHERS[kind]
    seen = found_in(function, torch.randn(B, N, D))
    assert seen.cores == ()
    (softmax,) = seen.unknown
    assert reason in softmax.softmax.reason


def test_keys_and_values_that_are_written_into_buffers_belong_to_a_core() -> None:
    """A cache is neither a weight nor changed between the products."""
    keys, values = torch.zeros(2, B, 2 * N, D)

    def cached(x: Tensor) -> Tensor:
        keys[:, :N], values[:, :N] = x, x.sin()
        y: Tensor = (x @ keys[:, :N].mT).softmax(-1) @ values[:, :N]
        return y

    seen = found_in(cached, torch.randn(B, N, D))
    assert [site.core.obstacle for site in seen.cores] == [""]


@pytest.mark.parametrize(
    ("kind", "does", "causal"),
    [
        ("plain", "", False),
        ("bias", "adds a bias, float32 [1, 2, 6, 6]", False),
        ("learned bias", "adds a learned bias, float32 [1, 2, 6, 6]", False),
        ("gathered bias", "adds a learned bias", False),
        ("relative", "adds a bias", False),
        ("causal", "hides later keys", True),
        ("causal that is added", "hides later keys", True),
        ("boolean mask", "hides the same keys from all queries, float32 [4, 1, 1, 6]", False),
        ("mask of ones", "hides the same keys from all queries", False),
        ("bias and boolean mask", "adds a bias and hides the same keys from all queries", False),
        ("two boolean masks", "hides keys", False),
    ],
)
def test_what_a_mask_does_is_said(kind: str, does: str, causal: bool) -> None:
    """A mask that hides later keys alone makes the core causal."""
    core = found_in_written(kind).cores[0].core
    assert core.mask.startswith(does)
    assert bool(core.mask) == bool(does)
    assert core.is_causal == causal


def test_masks_of_torchs_function_are_told_too() -> None:
    """True shows in a boolean one, and one that is all True hides nothing."""
    shows, q = torch.ones(N, N, dtype=torch.bool), torch.randn(B, H, N, D)
    for mask, does in ((shows.tril(), "hides later keys, bool [6, 6]"), (shows, "hides nothing in this call, bool")):
        (site,) = found_in(lambda q, mask=mask: F.scaled_dot_product_attention(q, q, q, mask), q).cores
        assert (site.core.mask.startswith(does), site.core.is_causal) == (True, False)


@pytest.mark.parametrize(
    ("returned", "is_told"), [(lambda o, _: o, 0), (lambda o, w: (o, w), 1), (lambda o, w: (o, w.mean(1)), 1)]
)
def test_weights_that_nothing_reads_have_their_line(returned: Callable[[Tensor, Tensor], Any], is_told: int) -> None:
    """If a module returns them, or something of them, beside its output."""

    class Returning(nn.Module):
        def forward(self, x: Tensor) -> Any:
            weights = (x @ x.mT).softmax(-1)
            return returned(weights @ x, weights)

    (site,) = found_in(Returning(), torch.randn(B, H, N, D)).cores
    assert (site.core.obstacle, "test_cores.py:" in site.core.unread) == ("", bool(is_told))


def test_fused_cores_are_found() -> None:
    """They have shapes, and the module that they belong to."""
    model = made("tests.tiny_models:Net[kind=causal,input=1x5x16]")
    first, second = (site.core for site in found_in(model, torch.randn(3, *model.items[0])).cores)
    assert (first.layer, second.layer, first.class_name) == ("inner.layers.0", "inner.layers.1", "Attention")
    assert (first.shapes, first.dtype) == (((3, 2, 5, 8),) * 3, "float32")
    assert (first.by_sdpa, first.is_fused, first.is_causal) == (True, True, True)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_a_core_by_flex_attention_stays() -> None:
    """It is found, and its programs are not read."""
    (site,) = found_in(lambda x: flex_attention(x, x.roll(1, -2), 2 * x), torch.randn(1, 2, 6, 8)).cores
    assert site.core.is_fused
    assert site.core.obstacle == "flex_attention: its own functions are not read"


def test_layers_of_torch_are_seen_inside() -> None:
    """Their fast path would be one operator; heads come from the layer."""
    for name in ("Encoder[input=1x5x16]", "Heads[input=1x5x16]"):
        model = made(f"tests.tiny_models:{name}").eval()
        seen = found_in(model, torch.randn(3, *model.items[0]))
        assert {site.core.shapes[0] for site in seen.cores} == {(3, 2, 5, 8)}
        assert seen.unknown == ()
    x = torch.randn(3, 5, 16)
    (site,) = found_in(nn.MultiheadAttention(16, 2, batch_first=True), x, x, x).cores
    assert (site.core.class_name, site.core.shapes[0]) == ("nn.MultiheadAttention", (3, 2, 5, 8))


Shapes = list[tuple[int, ...]]

GROUPS: Shapes = [(2, 6, 5, 8), (2, 2, 5, 8), (2, 2, 5, 8)]
"""Three heads of queries for each of keys."""

PLAIN, FLAT = EXPRESSIBLE["plain"], EXPRESSIBLE["three dimensions"]

SHAPES: dict[str, tuple[Callable[..., Tensor], Shapes, Shapes]] = {
    "flat": (FLAT, [(B, H, N, D)] * 3, [(B, H, N, D)] * 3),
    "einsum": (EXPRESSIBLE["einsum"], [(B, H, N, D)] * 3, [(B, H, N, D)] * 3),
    "one item, flat": (FLAT, [(1, H, N, D)] * 3, [(1, H, N, D)] * 3),
    "one dimension": (PLAIN, [(H, N, D)] * 3, [(H, 1, N, D)] * 3),
    "a learned query": (
        lambda x: (nn.Parameter(torch.ones(3, 8)) @ x.mT).softmax(-1) @ x,
        [(2, 5, 8)],
        [(2, 1, 3, 8), (2, 1, 5, 8), (2, 1, 5, 8)],
    ),
    "repeated keys": (
        lambda q, k, v: PLAIN(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1)), GROUPS, [(2, 6, 5, 8)] * 3
    ),
}  # fmt: skip
"""Functions, the shapes of their inputs, and the shapes of queries, keys and values."""


@pytest.mark.parametrize("kind", SHAPES)
def test_shapes_show_heads_as_far_as_the_graph_does(kind: str) -> None:
    """Heads of one item are heads, one dimension alone is of items; repeated keys are as many as queries."""
    function, inputs, shapes = SHAPES[kind]
    (site,) = found_in(function, *map(torch.randn, inputs)).cores
    assert [*site.core.shapes] == shapes


def test_several_products_of_one_softmax_are_cores() -> None:
    """Each has the same weights and values of its own."""

    def both(q: Tensor, v: Tensor) -> Tensor:
        weights = (q @ q.mT).softmax(-1)
        return weights @ v + weights @ q

    seen = found_in(both, *torch.randn(2, 2, 2, 5, 8))
    assert [site.core.obstacle for site in seen.cores] == ["", ""]
