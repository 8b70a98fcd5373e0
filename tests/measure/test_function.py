"""A layer is a function of each item of its input, or it can't be measured."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from bench.measure import function, workload
from bench.plan.case import Point
from impls import Unsupported
from tests.make.points import OF_LAYER, of_layer, point

Kind = Callable[[Any, Tensor], Tensor]


def _batch_norm(_layer: nn.Module, o: Tensor) -> Tensor:
    return F.batch_norm(o.flatten(1, 2), None, None, training=True).view_as(o)


CORES: dict[str, Kind] = {
    "dropout": lambda _layer, o: F.dropout(o, 0.1),
    "dropout_in_training": lambda layer, o: F.dropout(o, 0.1, layer.training),
    "counting": lambda layer, o: o * (1 + 0.01 * float(next(layer.counter))),
    "batch_norm": _batch_norm,
    "branch": lambda _layer, o: o if o.sum() > 0 else 2 * o,
    "four": lambda _layer, o: o.view(4, *o.shape[1:]),
}
"""Changes to the output of a core, which then isn't a function of the item's q, k and v."""


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
        return CORES[self.kind](self, F.scaled_dot_product_attention(q, k, v)).transpose(1, 2).flatten(2)


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
    """Only in the mode in which it does so; with dropout only in training it is a function in inference."""
    is_refused = mode != "inference" or kind != "dropout_in_training"
    assert bool(refusal(of_four(kind, mode))) is is_refused


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("name", OF_LAYER)
def test_the_layers_of_the_project_are_functions(name: str, mode: str) -> None:
    """An item has the same output beside others and alone."""
    function.check(workload.make(of_layer(name, mode=mode)))
