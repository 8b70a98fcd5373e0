"""A module as a function of its inputs, and the stand-in for `F.scaled_dot_product_attention`."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import nn

from impls import Unresolved, Unsupported
from impls.modules.wrapper import Held, Wrapper, X, bridge, copied, first_tensor, mask_cast
from tests import tiny_models


class Masked(nn.Module):
    """Adds a mask to its input."""

    def forward(self, x: torch.Tensor, *, mask: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return both together."""
        return x + mask, None


class Named(NamedTuple):
    """A result with a field of the name of a mapping's method."""

    values: torch.Tensor


def test_other_tensors_follow_the_batch() -> None:
    """Of one that has a row for each item, the first row is that of all items that come; another one stays whole.

    A square matrix is a mask of queries and keys, even if there are as many items as rows.
    """
    model = Wrapper(Masked(), ((3,),), (X,), {"mask": torch.tensor([[1.0] * 3, [2.0] * 3])}, batch=2)
    assert isinstance(model.kwargs["mask"], Held)
    assert model(torch.zeros(5, 3)).tolist() == [[1.0] * 3] * 5
    assert model.to(torch.float64)(torch.zeros(1, 3, dtype=torch.float64)).dtype == torch.float64
    of_all = Wrapper(Masked(), ((3,),), (X,), {"mask": torch.arange(3.0)}, batch=2)
    assert of_all.returned == ""
    assert of_all(torch.zeros(2, 3)).tolist() == [[0.0, 1.0, 2.0]] * 2
    assert of_all.returned == "tuple"
    square = torch.arange(9.0).view(3, 3)
    model = Wrapper(Masked(), ((3,),), (X,), {"mask": square}, batch=3)
    assert torch.equal(model(torch.zeros(3, 3)), square)


def test_rows_of_an_item_stay_together() -> None:
    """A layer that gets several rows for each item, such as windows, has them in one item."""
    model = Wrapper(nn.Linear(4, 2), ((3, 5, 4),), group=3)
    assert model(torch.zeros(2, 3, 5, 4)).shape == (2, 3, 5, 2)


def test_the_first_tensor_is_the_output() -> None:
    """Of a tuple, a mapping or an object, the first of floating-point numbers; anything else is no output."""
    one, number = torch.ones(1), torch.ones(1, dtype=torch.long)
    several = (None, number, one, 2 * one), [number, one], {"a": number, "b": one}
    for output in (one, *several, SimpleNamespace(y=one), Named(one)):
        assert first_tensor(output) is one
    nothing: Any
    for nothing in ("x", None, (), (None, number), {}, SimpleNamespace(), 3):
        with pytest.raises(Unresolved, match=f"must return a tensor.*got {type(nothing).__name__}"):
            first_tensor(nothing)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attn_mask": torch.zeros(5, 5)}, "a mask tensor, and this attend declares no keyword attn_mask"),
        ({"is_causal": True}, "a causal mask, and this attend declares no keyword mask"),
        ({"dropout_p": 0.1}, "dropout, and this attend declares no keyword dropout_p"),
    ],
)
def test_what_an_attend_does_not_declare_is_refused(options: dict[str, object], words: str) -> None:
    """Never dropped in silence."""
    q = torch.randn(1, 2, 5, 4)
    with pytest.raises(Unsupported, match=words):
        bridge(tiny_models.right)(q, q, q, **options)


@pytest.mark.parametrize("lead", [(3,), (2, 3), (2, 2, 3), (1, 2, 2, 3)])
@pytest.mark.parametrize("mask", [None, (5, 6), (3, 5, 6)])
def test_queries_of_other_dimensions_become_batch_and_heads(
    lead: tuple[int, ...], mask: tuple[int, ...] | None
) -> None:
    """An attend gets four dimensions, with a mask that fits; the output has those of the call, values are wider."""
    q, k, v = (torch.randn(*lead, *sizes) for sizes in ((5, 4), (6, 4), (6, 7)))
    attn_mask = None if mask is None else torch.randn(mask)
    dimensions: list[int] = []

    def attend(q: torch.Tensor, *others: torch.Tensor, attn_mask: torch.Tensor | None = None) -> torch.Tensor:
        dimensions.append(q.dim())
        return tiny_models.with_mask(q, *others, attn_mask=attn_mask)  # type: ignore[arg-type]  # the scale is last

    torch.testing.assert_close(bridge(attend)(q, k, v, attn_mask), F.scaled_dot_product_attention(q, k, v, attn_mask))
    assert dimensions == [4]


KEYS = 32
"""As many as a vector of numbers has at least twice."""


def weights_of(function: Any, mask: torch.Tensor) -> torch.Tensor:
    """Return the weights of a query whose logits are all 1, in float64 with a scale of 0.5 and a mask."""
    q, k = torch.zeros(1, 1, 1, KEYS).double(), torch.zeros(1, 1, KEYS, KEYS).double()
    q[..., 0] = k[..., 0] = 1.0
    return function(q, k, torch.eye(KEYS).double()[None, None], mask, scale=0.5)[0, 0, 0]  # type: ignore[no-any-return]


def test_a_mask_is_cast_to_the_type_of_the_queries() -> None:
    """One of numbers; a boolean one, and none, are as they were."""
    mask = torch.arange(KEYS) / KEYS
    for each in (mask, mask.double(), mask.bfloat16()):
        expected = (0.5 + each.double()).softmax(-1)
        assert torch.allclose(weights_of(mask_cast, each[None]), expected)
    assert torch.allclose(weights_of(mask_cast, (mask > 0)[None]), (mask > 0).double() / (KEYS - 1))


def test_torch_leaves_scale_and_mask_out_of_scores_for_a_float32_mask_beside_float64() -> None:
    """So the cast is needed. A torch that has mended it ends this test."""
    mask = torch.arange(KEYS) / KEYS
    weights, right = weights_of(F.scaled_dot_product_attention, mask[None]), (0.5 + mask.double()).softmax(-1)
    if torch.allclose(weights, right):
        pytest.skip("this torch, on this CPU, is right: impls.modules.wrapper.mask_cast may go")
    logits = (weights / weights[0]).log() + 0.5
    wrong = (logits - 0.5 - mask.double()).abs() > 1e-6
    assert torch.allclose(logits[wrong], torch.ones(int(wrong.sum())).double())  # neither scale nor mask


@pytest.mark.parametrize(
    ("tensor", "kind"),
    [
        (torch.zeros(2, dtype=torch.complex64), "complex"),
        (torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(1, 3)], layout=torch.jagged), "nested"),
        (torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(1, 3)]), "nested"),
        (torch.eye(2).to_sparse(), "sparse_coo"),
    ],
)
def test_a_tensor_that_can_not_be_compared_is_refused(tensor: torch.Tensor, kind: str) -> None:
    """Its kind is said."""
    with pytest.raises(Unsupported, match=f"a {kind} tensor"):
        first_tensor(tensor)


def test_a_copy_leaves_the_graph_of_a_call_behind() -> None:
    """What a call left in attributes can't be copied with its graph; weights and shared tensors are as they were."""
    layer: Any = nn.Linear(2, 2)
    layer.seen, layer.all_seen = layer.weight * 2, [layer.weight * 3]
    twin = copied(layer)
    assert torch.equal(twin.seen, layer.weight * 2)
    assert twin.seen.is_leaf
    assert twin.all_seen[0].is_leaf
    assert twin.weight is not layer.weight
    assert copied(layer, {id(layer.weight): layer.weight}).weight is layer.weight
