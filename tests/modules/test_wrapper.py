"""What counts as a module's output, and copies of modules."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from bench.modules.wrapper import copied, first_tensor
from impls import Unresolved, Unsupported


class Named(NamedTuple):
    """A result with a field of the name of a mapping's method."""

    values: torch.Tensor


def test_the_first_tensor_is_the_output() -> None:
    """In a tuple, a mapping or an object, the first floating-point tensor is; anything else isn't an output."""
    one, number = torch.ones(1), torch.ones(1, dtype=torch.long)
    several = (None, number, one, 2 * one), [number, one], {"a": number, "b": one}
    for output in (one, *several, SimpleNamespace(y=one), Named(one)):
        assert first_tensor(output) is one
    nothing: Any
    for nothing in ("x", None, (), (None, number), {}, SimpleNamespace(), 3):
        with pytest.raises(Unresolved, match=f"must return a floating-point tensor.*got {type(nothing).__name__}"):
            first_tensor(nothing)


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
    """Tensors that a call left in attributes lose their graph in a copy; weights and shared tensors are unchanged."""
    layer: Any = nn.Linear(2, 2)
    layer.seen, layer.all_seen = layer.weight * 2, [layer.weight * 3]
    twin = copied(layer)
    assert torch.equal(twin.seen, layer.weight * 2)
    assert twin.seen.is_leaf
    assert twin.all_seen[0].is_leaf
    assert twin.weight is not layer.weight
    assert copied(layer, {id(layer.weight): layer.weight}).weight is layer.weight
