"""Modules that run the graph of their own call."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import impls
from bench.modules.graph.running import InGraph, unchanged
from bench.modules.graph.tracing import traced
from bench.modules.wrapper import Wrapper, X
from impls.catalogue import GRAPH
from tests.tiny_models import Capped, Written, right


class Around(nn.Module):
    """A layer that does something with its input, or with kept values, around a hand-written core."""

    calls: Tensor
    table: Tensor

    def __init__(self, does: "Callable[[Around, Tensor], Tensor]") -> None:
        super().__init__()
        self.inner, self.other, self.does = Written(16), Capped(16), does
        self.rows, self.kept = 0, list[Any]()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("table", torch.zeros(8, 16), persistent=False)

    def core(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        y: Tensor = self.inner(x)
        return y

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        return self.does(self, x)


def counting(layer: Around, x: Tensor) -> Tensor:
    """Count calls in a buffer, and don't use the count."""
    layer.calls += 1
    return layer.core(x)


def filling(layer: Around, x: Tensor) -> Tensor:
    """Fill a table in a buffer at the first call, and keep in a number that it is filled."""
    if layer.rows < x.shape[1]:
        layer.rows = x.shape[1]
        layer.table[: layer.rows] = torch.arange(layer.rows)[:, None].float().cos()
    return layer.core(x * layer.table[: x.shape[1]])


def remembering(layer: Around, x: Tensor) -> Tensor:
    """Add the tokens of all calls."""
    layer.kept.append(x)
    return layer.core(sum(layer.kept))


def both(layer: Around, x: Tensor) -> Tensor:
    """Add to a core that can be expressed one that can't."""
    return layer.core(x) + torch.as_tensor(layer.other(x))


def branch(layer: Around, x: Tensor) -> Tensor:
    """Decide by the sign of the sum."""
    y = layer.core(x)
    return y if x.sum() > 0 else 2 * y


def rare_branch(layer: Around, x: Tensor) -> Tensor:
    """Decide by a number that is seldom small."""
    y = layer.core(x)
    return y.sin() if x.mean() > 100 * x[0, 0, 0].abs() else y.cos()


def shaping(layer: Around, x: Tensor) -> Tensor:
    """Keep some channels by their values."""
    y, kept = layer.core(x), (x[0, :, 0] > 0).nonzero()[:, 0]
    return y + y[:, kept].reshape(len(kept) * 16).sum()


def logging(layer: Around, x: Tensor) -> Tensor:
    """Check the input, and keep its mean for a log."""
    if bool(x.isnan().any()):
        raise ValueError("NaN")
    layer.kept.append(x.mean().item())
    return layer.core(x)


def tokens(batch: int = 2, **of: Any) -> Tensor:
    """Return random tokens."""
    return torch.randn(batch, 5, 16, **of)


@pytest.mark.parametrize(("dtype", "batches"), [(torch.float32, (1, 3)), (torch.bfloat16, (2,))])
def test_a_graph_computes_what_the_module_does(dtype: torch.dtype, batches: tuple[int, ...]) -> None:
    """In each precision and for each shape, in inference and with gradients of inputs and weights."""
    layer = Written(16).to(dtype)
    graph = unchanged(layer)
    for batch in batches:
        x = tokens(batch, dtype=dtype)
        with torch.inference_mode():
            assert torch.equal(graph(x), layer(x))
        x.requires_grad_()
        y, expected = graph(x), layer(x)
        weights = [x, *layer.parameters()]
        grads = zip(torch.autograd.grad(y.sum(), weights), torch.autograd.grad(expected.sum(), weights), strict=True)
        assert all(torch.equal(*pair) for pair in grads)


def test_dropout_is_on_in_training_alone() -> None:
    """A graph is of a module as it was when it was traced."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).eval()
    new, x = InGraph(model), torch.randn(4, 8)
    assert torch.equal(new(x), new(x))
    new.train()
    assert not torch.equal(new(x), new(x))
    new.eval()
    assert torch.equal(new(x), model(x))


def test_a_graph_follows_its_weights() -> None:
    """It shares the module's weights, also after changes and casts; a copy has its own."""
    layer, x = Written(16), tokens()
    graph = InGraph(layer, right)
    assert {*map(id, graph.parameters())} == {*map(id, layer.parameters())}
    first = graph(x)
    other = copy.deepcopy(graph)
    with torch.no_grad():
        layer.proj.weight.mul_(2)
        torch.testing.assert_close(graph(x), layer(x))
    torch.testing.assert_close(other(x), first)
    assert graph.double()(x.double()).dtype == torch.float64
    assert other(x).dtype == torch.float32


def test_the_graph_of_a_module_that_fills_a_table_at_its_first_call_is_that_of_a_later_one() -> None:
    """Tracing alone leaves neither the table nor what says that it is filled."""
    layer, x = Around(filling), tokens()
    traced(layer, [x])
    assert (layer.rows, int(layer.table.count_nonzero())) == (0, 0)
    graph = InGraph(layer, right)
    torch.testing.assert_close(graph(x), copy.deepcopy(layer)(x))
    layer.table.zero_()
    assert torch.equal(graph(x), graph(0 * x)), "the graph fills the table in each call"


def test_a_module_that_keeps_something_from_call_to_call_is_refused() -> None:
    """Its output doesn't depend on the input alone, so its graph would hold only for one call."""
    with pytest.raises(impls.Unsupported, match="a second call on the same input returns something else"):
        InGraph(Around(remembering))(tokens())


def test_a_buffer_changes_once_in_a_call() -> None:
    """Tracing and the check of a graph leave no traces."""
    layer = Around(counting)
    graph, state = InGraph(layer), torch.get_rng_state()
    x = torch.zeros(2, 5, 16)
    graph(x)
    graph(x)
    assert layer.calls == 2
    assert torch.equal(torch.get_rng_state(), state)


def test_how_many_softmaxes_stay_is_said() -> None:
    """With the place of the first; a graph that is replaced as a whole has nothing to say."""
    x = tokens()
    whole, part = InGraph(Written(16), right), InGraph(Around(both), right)
    torch.testing.assert_close(part(x), part.inner(x))
    whole(x)
    assert whole.adapted_by == GRAPH
    assert part.adapted_by.startswith(f"{GRAPH}, 1 of 2 softmaxes stay, such as at ")


def test_a_graph_is_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """With static shapes, once for each shape of inputs."""
    compiled: list[Any] = []

    def compile_it(module: Any, **options: Any) -> Any:
        compiled.append((type(module).__name__, options))
        return module

    monkeypatch.setattr(torch, "compile", compile_it)
    graph = InGraph(Written(16), right)
    graph.compile(dynamic=False, mode="default")
    for batch in (2, 2, 3):
        graph(tokens(batch))
    assert compiled == [("GraphModule", {"dynamic": False, "mode": "default"})] * 2


class Crossed(nn.Module):
    """A layer whose keys and values come from another input alone, for one head."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(16, 16), nn.Linear(16, 32)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        k, v = self.kv(context).chunk(2, -1)
        weights: Tensor = (self.q(x) @ k.mT / 4).softmax(-1)
        y: Tensor = weights @ v
        return y


def test_what_a_module_gets_beside_its_input_is_no_parameter() -> None:
    """Attention to a tensor that is kept for all calls isn't a gate."""
    layer = Wrapper(Crossed(), ((5, 16),), (X, torch.randn(2, 7, 16)), batch=2)
    x = tokens()
    torch.testing.assert_close(InGraph(layer, right)(x), layer(x))


AT = r".*, at .*test_running\.py:[0-9]+"


@pytest.mark.parametrize(
    ("does", "words", "attend"),
    [
        (lambda layer, x: layer.core(x) * x.mean().item(), "branches on the values of its inputs", None),
        (branch, f"branches on{AT}", right),
        (rare_branch, "branches on the values of its inputs", None),
        (shaping, f"branches on{AT}", right),
    ],
)
def test_a_module_that_decides_by_values_is_refused(does: Any, words: str, attend: Any) -> None:
    """Its graph is of one call; the line is named, also if no core could be replaced."""
    x = torch.ones(1, 5, 16).index_fill_(2, torch.tensor([0]), 1e-6) if does is rare_branch else tokens(1)
    with pytest.raises(impls.Unsupported, match=words), torch.no_grad():
        InGraph(Around(does).eval(), attend)(x)


def test_a_number_that_is_only_read_decides_nothing() -> None:
    """A log, and a check of the input, are in no graph."""
    layer, x = Around(logging).eval(), torch.randn(1, 5, 16)
    with torch.no_grad():
        assert torch.equal(InGraph(layer)(x), layer(x))
