"""Calls of modules as graphs."""

import pytest
import torch
from torch import Tensor, nn

from bench.modules.graph.tracing import Untraceable, traced


@pytest.mark.parametrize("has_gradients", [True, False])
def test_a_block_without_gradients_ends(has_gradients: bool) -> None:
    """What comes after it has gradients if the call is one with gradients."""
    layer = nn.Linear(4, 4)

    def function(x: Tensor) -> Tensor:
        with torch.no_grad():
            x = layer(x)
        y: Tensor = layer(x)
        return y

    x = torch.randn(3, 4)
    with torch.set_grad_enabled(has_gradients):
        y = traced(function, (x,)).module(x)
    assert y.requires_grad == has_gradients
    if has_gradients:
        ours, theirs = (torch.autograd.grad(each.sum(), layer.weight)[0] for each in (y, function(x)))
        assert torch.equal(ours, theirs)


class Deciding(nn.Module):
    """A layer that raises for a negative sum."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x, or raise."""
        if x.sum().item() < 0:
            raise ValueError("a negative sum")
        return x * float(x.amax())


def test_a_number_that_is_taken_from_a_tensor_is_that_of_the_call() -> None:
    """A branch too; an error has the line of the module."""
    x = torch.rand(4)
    assert torch.equal(traced(Deciding(), (x,)).module(x), Deciding()(x))
    with pytest.raises(Untraceable, match=r"ValueError: a negative sum at .*test_tracing\.py:\d+"):
        traced(Deciding(), (-x,))
