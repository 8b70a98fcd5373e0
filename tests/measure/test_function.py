"""A layer is a function of each item of its input, or it can't be measured."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from bench.measure import function, workload
from bench.plan.case import Point
from impls import Unsupported
from tests.points import OF_LAYER, of_layer, point

Core = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]


def _sdpa(layer: nn.Module, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, **options)


def _slots(layer: nn.Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _sdpa(layer, torch.randn_like(q), k, v)


def _performer(layer: nn.Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return attention with random features, drawn anew in each call."""
    drawn = torch.randn(q.shape[-1], 8)
    o: Tensor = (q @ drawn).softmax(dim=-1) @ ((k @ drawn).softmax(dim=-2).mT @ v)
    return o


def _growing(layer: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    layer.keys = torch.cat([getattr(layer, "keys", k[..., :0, :]), k], dim=-2)
    layer.values = torch.cat([getattr(layer, "values", v[..., :0, :]), v], dim=-2)
    return _sdpa(layer, q, layer.keys, layer.values)


def _depth(layer: nn.Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    kept = 1.0 if not layer.training else float(torch.rand(()) < 0.9) / 0.9
    return _sdpa(layer, q, k, v) * kept


def _batch_norm(layer: nn.Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    o = _sdpa(layer, q, k, v)
    normed: Tensor = F.batch_norm(o.flatten(1, 2), None, None, training=True).view_as(o)
    return normed


def _counting(layer: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _sdpa(layer, q, k, v) * (1 + 0.01 * float(next(layer.counter)))


CORES: dict[str, Core] = {
    "dropout": lambda layer, q, k, v: F.dropout(_sdpa(layer, q, k, v), 0.1),
    "dropout_in_sdpa": lambda layer, q, k, v: _sdpa(layer, q, k, v, dropout_p=0.1),
    "dropout_in_training": lambda layer, q, k, v: F.dropout(_sdpa(layer, q, k, v), 0.1, layer.training),
    "rrelu": lambda layer, q, k, v: F.rrelu(_sdpa(layer, q, k, v), training=layer.training),
    "noise": lambda layer, q, k, v: _sdpa(layer, q + 0.1 * torch.randn_like(q), k, v),
    "slots": _slots,
    "performer": _performer,
    "depth": _depth,
    "growing": _growing,
    "counting": _counting,
    "batch_norm": _batch_norm,
}
"""Cores that are no function of the item's q, k and v."""

IN_TRAINING = ("dropout_in_training", "rrelu", "depth")
"""Those that are functions in inference."""


class Random(nn.Module):
    """A layer with one of the CORES."""

    def __init__(self, kind: str, channels: int = 12) -> None:
        super().__init__()
        self.kind = kind
        self.counter = itertools.count()
        self.qkv = nn.Linear(channels, 3 * channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return attention with heads of 4 channels."""
        q, k, v = self.qkv(x).unflatten(2, (3, -1, 4)).permute(2, 0, 3, 1, 4)
        return CORES[self.kind](self, q, k, v).transpose(1, 2).flatten(2)


def of_four(kind: str, mode: str = "inference") -> Point:
    """Return a point of a layer with one of the CORES."""
    return point(layer=f"tests.measure.test_function:Random[kind={kind}]", mode=mode, batch=4)


def refusal(at: Point) -> str:
    """Return why a point's layer is refused, empty if it isn't."""
    try:
        function.check(workload.make(at))
    except Unsupported as reason:
        return str(reason)
    return ""


@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
@pytest.mark.parametrize("kind", CORES)
def test_a_layer_that_returns_something_else_each_time_is_refused(kind: str, mode: str) -> None:
    """In the mode in which it does so; what is dropped in training alone is a function in inference."""
    is_refused = mode != "inference" or kind not in IN_TRAINING
    assert bool(refusal(of_four(kind, mode))) is is_refused


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("dropout", "it draws random numbers: is dropout on?"),
        ("growing", "does it keep state from call to call?"),
        ("batch_norm", "depends on the other items of the batch"),
    ],
)
def test_the_reason_says_what_to_look_for(kind: str, words: str) -> None:
    """Random numbers, a state, or other items."""
    assert words in refusal(of_four(kind))


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("name", OF_LAYER)
def test_the_layers_of_the_project_are_functions(name: str, mode: str) -> None:
    """An item has the same output beside others and alone."""
    function.check(workload.make(of_layer(name, mode=mode)))
