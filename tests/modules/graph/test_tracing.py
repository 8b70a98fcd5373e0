"""Calls of modules as graphs."""

import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import PythonKeyTracer

from bench.modules.graph.tracing import Untraceable, name, traced, where


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


def test_lines_are_known_of_each_node_of_torchs_own_module() -> None:
    """It has no other source."""
    model, x = nn.MultiheadAttention(16, 2, batch_first=True), torch.randn(2, 5, 16)
    graph = traced(model, (x, x, x)).module
    (softmax,) = (node for node in graph.graph.nodes if "softmax" in name(node))
    assert "torch/nn/" in where(softmax)


def test_what_a_call_does_to_buffers_and_random_numbers_is_undone() -> None:
    """A module is as it was before."""
    model = nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.5)).train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    traced(model, (torch.ones(4, 8),))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_a_module_with_buffers_of_inference_mode_can_be_traced() -> None:
    """Also if it changes them in place, as in training; they are as before in the end."""
    norm, x = nn.BatchNorm1d(4).eval().requires_grad_(requires_grad=False), torch.randn(8, 4)
    with torch.inference_mode():
        norm.running_mean, norm.num_batches_tracked = torch.full((4,), 2.0), torch.tensor(7)
    assert torch.allclose(traced(norm, (x,)).module(x), x - 2, atol=1e-4)
    traced(norm.train(), (x,))
    assert int(norm.num_batches_tracked) == 7


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


def test_names_of_torch_are_as_they_were_after() -> None:
    """Also after an error."""
    before = vars(PythonKeyTracer).get("create_node"), torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(Untraceable):
        traced(Deciding(), (-torch.rand(3),))
    assert (vars(PythonKeyTracer).get("create_node"), torch.backends.mha.get_fastpath_enabled()) == before
