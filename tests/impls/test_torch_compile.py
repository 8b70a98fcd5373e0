"""What compiled does around torch.compile; a backend of our own stands in for Inductor and its seconds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor, nn

from impls import Adapt, Implementation, Unsupported, compiled, with_attend
from impls.attend import eager
from impls.layers.vit import ViTAttention
from impls.whole import mha, stepwise
from tests.impls.reference import normal

pytestmark = pytest.mark.slow

ADAPTERS = [
    pytest.param(with_attend(eager.attend), id="a module"),
    pytest.param(stepwise.adapt, id="a function"),
]


@dataclass
class Backend:
    """A backend that runs the graph as it is and keeps the shapes that it was compiled for."""

    graphs: list[list[tuple[object, ...]]] = field(default_factory=list)

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
        """Return the graph itself."""
        self.graphs.append([tuple(value.shape) for value in inputs if isinstance(value, Tensor)])
        assert not any(isinstance(value, torch.SymInt) for value in inputs)
        return graph


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def same(layer: nn.Module) -> Implementation:
    """Return the layer itself: the plainest adapter that a user can write."""
    return layer


@pytest.mark.parametrize("adapt", ADAPTERS)
def test_compilation_happens_in_the_first_call(adapt: Adapt) -> None:
    """Building compiles nothing, the first call one graph, the second nothing, and the output stays what it was."""
    backend, layer, x = Backend(), ViTAttention(6, 8, 2), normal(2, 5, 6)
    counts = []

    implementation = compiled(adapt, backend=backend)(layer)
    for _ in range(3):
        counts.append(len(backend.graphs))
        torch.testing.assert_close(implementation(x), layer(x))

    assert counts == [0, 1, 1]


@pytest.mark.parametrize("adapt", ADAPTERS)
def test_shapes_are_static(adapt: Adapt) -> None:
    """Another number of tokens is compiled anew, for its own numbers."""
    backend = Backend()
    implementation = compiled(adapt, backend=backend)(ViTAttention(6, 8, 2))

    for tokens in (5, 6, 7):
        implementation(normal(2, tokens, 6))

    assert len(backend.graphs) == 3
    assert [(2, tokens, 6) in shapes for tokens, shapes in zip((5, 6, 7), backend.graphs, strict=True)] == [True] * 3


def test_parameters_keep_their_names() -> None:
    """A compiled module's parameters have the layer's names and are the layer's own."""
    layer = ViTAttention(6, 8, 2, qkv_bias=True)

    implementation = compiled(with_attend(eager.attend), backend=Backend())(layer)

    assert isinstance(implementation, nn.Module)
    assert list(implementation.named_parameters()) == list(layer.named_parameters())


@pytest.mark.parametrize("adapt", [*ADAPTERS, pytest.param(same, id="the layer itself")])
def test_the_layer_stays_uncompiled(adapt: Adapt) -> None:
    """Calling the layer that an implementation was compiled from compiles nothing."""
    backend = Backend()
    layer = ViTAttention(6, 8, 2)

    compiled(adapt, backend=backend)(layer)
    layer(normal(2, 5, 6))

    assert backend.graphs == []


def test_unsupported_goes_through() -> None:
    """What the adapter can't express the compiled adapter can't express either."""
    with pytest.raises(Unsupported, match="token_len"):
        compiled(mha.adapt)(ViTAttention(49, 64))


def test_options_reach_torch_compile() -> None:
    """An option that torch.compile doesn't know is refused by torch.compile, so none gets lost on the way."""
    with pytest.raises(RuntimeError, match="nonsense"):
        compiled(with_attend(eager.attend), backend="nonsense")(ViTAttention(6, 8, 2))(normal(2, 5, 6))
