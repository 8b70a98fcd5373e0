"""What compiled does around torch.compile; a backend of our own stands in for Inductor and its seconds."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from impls import Adapt, Unsupported, compiled, compiles, with_attend
from impls.attend import eager
from impls.layers.vit import ViTAttention
from impls.whole import mha
from tests.impls.reference import normal

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fresh_compiler")]

ADAPTERS = {
    "a module": with_attend(eager.attend),
    "a function": lambda layer: lambda x: layer(x),
    "the layer itself": lambda layer: layer,
}


class Backend:
    """A backend that runs the graph as it is and keeps the shapes that it was compiled for."""

    def __init__(self) -> None:
        self.graphs: list[list[tuple[object, ...]]] = []

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
        """Return the graph itself."""
        self.graphs.append([tuple(value.shape) for value in inputs if isinstance(value, Tensor)])
        assert not any(isinstance(value, torch.SymInt) for value in inputs)
        return graph


@pytest.mark.parametrize("adapt", ADAPTERS.values(), ids=ADAPTERS)
def test_each_shape_is_compiled_in_its_first_call(adapt: Adapt) -> None:
    """Building compiles nothing, the first call one graph, the second nothing, and the output stays what it was.

    Shapes are static: another number of tokens is compiled anew, for its own numbers.
    Calling the layer itself compiles nothing. A compiled module's parameters are the layer's own, by their names.
    """
    backend, layer = Backend(), ViTAttention(6, 8, 2, qkv_bias=True)
    implementation = compiled(adapt, backend=backend)(layer)
    counts = [len(backend.graphs)]
    for tokens in (5, 5, 6):
        x = normal(2, tokens, 6)
        torch.testing.assert_close(implementation(x), layer(x))
        counts.append(len(backend.graphs))
    assert counts == [0, 1, 1, 2]
    assert [(2, tokens, 6) in shapes for tokens, shapes in zip((5, 6), backend.graphs, strict=True)] == [True] * 2
    if isinstance(implementation, nn.Module):
        assert list(implementation.named_parameters()) == list(layer.named_parameters())


def test_what_is_marked_as_compiling() -> None:
    """A run of these without a graph would be a fallback."""
    assert [name for name in ("flex", "compiled_sdpa", "sdpa") if compiles(name)] == ["flex", "compiled_sdpa"]


def test_unsupported_and_options_go_through() -> None:
    """What the adapter can't express the compiled adapter can't express either.

    An option that torch.compile doesn't know is refused by torch.compile, so none gets lost on the way.
    """
    with pytest.raises(Unsupported, match="token_len"):
        compiled(mha.adapt)(ViTAttention(49, 64))
    with pytest.raises(RuntimeError, match="nonsense"):
        compiled(with_attend(eager.attend), backend="nonsense")(ViTAttention(6, 8, 2))(normal(2, 5, 6))
