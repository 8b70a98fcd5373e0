"""What is compiled; a backend of our own stands in for Inductor and its seconds."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from impls import build
from impls.layers.vit import ViTAttention
from tests.impls.reference import normal


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("name", ["compiled", "compiled_eager"])
def test_each_shape_is_compiled_in_its_first_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Building compiles nothing, the first call one graph, the second nothing, and another shape a new graph.

    Calling the layer itself compiles nothing. The parameters are the layer's own, by their names.
    """
    graphs: list[list[tuple[int, ...]]] = []

    def backend(graph: torch.fx.GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
        graphs.append([tuple(value.shape) for value in inputs if isinstance(value, Tensor)])
        assert not any(isinstance(value, torch.SymInt) for value in inputs)
        return graph

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    layer = ViTAttention(6, 8, 2, qkv_bias=True)
    implementation = build(layer, name)
    counts = [len(graphs)]
    for tokens in (5, 5, 6):
        x = normal(2, tokens, 6)
        torch.testing.assert_close(implementation(x), layer(x))
        counts.append(len(graphs))
    assert counts == [0, 1, 1, 2]
    assert [(2, tokens, 6) in shapes for tokens, shapes in zip((5, 6), graphs, strict=True)] == [True] * 2
    assert isinstance(implementation, nn.Module)
    assert list(implementation.named_parameters()) == list(layer.named_parameters())
