"""Modules that run the graph of their own call."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import impls
from impls.catalogue import GRAPH
from impls.graph.running import InGraph
from impls.graph.tracing import traced
from impls.modules.wrapper import Wrapper, X
from tests.tiny_models import Capped, Net, Written, right


class Deciding(nn.Module):
    """A layer whose way depends on the mean of its input, by a number or by a branch."""

    def __init__(self, *, by_number: bool) -> None:
        super().__init__()
        self.inner, self.by_number = Written(16), by_number

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        y: Tensor = self.inner(x)
        if self.by_number:
            return y * x.mean().item()
        return y.sin() if x.mean() > 100 * x[0, 0, 0].abs() else y.cos()


class Counting(nn.Module):
    """A layer that counts its calls in a buffer, and doesn't use the count."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner = Written(16)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        self.calls += 1
        y: Tensor = self.inner(x)
        return y


class Filling(nn.Module):
    """A layer that fills a table in a buffer at its first call, and keeps in a number that it did."""

    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.rows = Written(16), 0
        self.register_buffer("table", torch.zeros(8, 16), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        if self.rows < x.shape[1]:
            self.rows = x.shape[1]
            self.table[: self.rows] = torch.arange(self.rows)[:, None].float().cos()
        y: Tensor = self.inner(x * self.table[: x.shape[1]])
        return y


class Remembering(nn.Module):
    """A layer that adds the keys of all calls."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.before = Written(16), list[Tensor]()

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        self.before.append(x)
        y: Tensor = self.inner(sum(self.before))
        return y


class Both(nn.Module):
    """A core that can be expressed beside one that can't."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Written(16), Capped(16)

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        y: Tensor = self.one(x) + self.other(x)
        return y


def tokens(batch: int = 2, **of: Any) -> Tensor:
    """Return random tokens."""
    return torch.randn(batch, 5, 16, **of)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_graph_computes_what_the_module_does(dtype: torch.dtype) -> None:
    """In each precision and for each shape, in inference and with gradients of inputs and weights."""
    layer = Net("written").to(dtype)
    graph = InGraph(layer)
    for batch in (1, 3):
        x = tokens(batch, dtype=dtype)
        with torch.inference_mode():
            assert torch.equal(graph(x), layer(x))
        x.requires_grad_()
        y, expected = graph(x), layer(x)
        weights = [x, *layer.parameters()]
        grads = zip(torch.autograd.grad(y.sum(), weights), torch.autograd.grad(expected.sum(), weights), strict=True)
        assert all(torch.equal(*pair) for pair in grads)


def test_a_graph_follows_its_weights() -> None:
    """They are those of the module, also after they were changed or cast; a copy has weights of its own."""
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


@pytest.mark.parametrize("by_number", [True, False])
def test_a_module_that_decides_by_values_is_refused(*, by_number: bool) -> None:
    """Its graph is of one call; with other values it would be wrong."""
    graph = InGraph(Deciding(by_number=by_number))
    x = torch.ones(2, 5, 16) if by_number else torch.ones(2, 5, 16).index_fill_(2, torch.tensor([0]), 1e-6)
    with pytest.raises(impls.Unsupported, match="decides by the values of its inputs"):
        graph(x)


def test_the_graph_of_a_module_that_fills_a_table_at_its_first_call_is_that_of_a_later_one() -> None:
    """Tracing alone leaves neither the table nor what says that it is filled."""
    layer, x = Filling(), tokens()
    traced(layer, [x])
    assert (layer.rows, int(layer.table.count_nonzero())) == (0, 0)
    graph = InGraph(layer, right)
    torch.testing.assert_close(graph(x), copy.deepcopy(layer)(x))
    layer.table.zero_()
    assert torch.equal(graph(x), graph(0 * x)), "the graph fills the table in each call"


def test_a_module_that_keeps_something_from_call_to_call_is_refused() -> None:
    """Its input decides nothing, and its graph would be that of one call."""
    with pytest.raises(impls.Unsupported, match="a second call on the same input returns something else"):
        InGraph(Remembering())(tokens())


def test_a_buffer_changes_once_in_a_call() -> None:
    """Tracing and the check of a graph leave no traces."""
    layer = Counting()
    graph, state = InGraph(layer), torch.get_rng_state()
    x = torch.zeros(2, 5, 16)
    graph(x)
    graph(x)
    assert layer.calls == 2
    assert torch.equal(torch.get_rng_state(), state)


def test_how_many_softmaxes_stay_is_said() -> None:
    """With the place of the first; a graph that is replaced as a whole has nothing to say."""
    x = tokens()
    whole, part = InGraph(Net("written"), right), InGraph(Both(), right)
    torch.testing.assert_close(part(x), part.inner(x))
    whole(x)
    assert whole.adapted_by == GRAPH
    assert part.adapted_by.startswith(f"{GRAPH}, 1 of 2 softmaxes stay, as that at ")


def test_what_an_attend_raises_comes_through() -> None:
    """A graph prints nothing, and is traced again at the next call."""

    def refusing(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        raise impls.Unsupported(f"no width {q.shape[-1]}")

    with pytest.raises(impls.Unsupported, match="no width 8"):
        InGraph(Written(16), refusing)(tokens())


def test_a_module_of_anybody_needs_no_wrapper() -> None:
    """Its name is enough; one without attention has a graph too."""
    x = tokens()
    for layer in (Written(16), nn.Linear(16, 16)):
        torch.testing.assert_close(impls.build(layer, GRAPH)(x), layer(x))


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
    """Attention to a tensor that is held for all calls is no gate."""
    layer = Wrapper(Crossed(), ((5, 16),), (X, torch.randn(2, 7, 16)), batch=2)
    x = tokens()
    torch.testing.assert_close(InGraph(layer, right)(x), layer(x))


class ByValues(nn.Module):
    """A layer that reads numbers of its input."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.inner, self.kind, self.log = Written(16), kind, list[float]()

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens for tokens."""
        y: Tensor = self.inner(x)
        if self.kind == "branch":
            return y if x.sum() > 0 else 2 * y
        if self.kind == "loop":
            size = x.abs().mean()
            while size > 4:
                size, y = size / 2, y + 1
            return y
        if self.kind == "shape":
            kept = (x[0, :, 0] > 0).nonzero()[:, 0]
            return y + y[:, kept].reshape(len(kept) * 16).sum()
        if bool(x.isnan().any()):
            raise ValueError("NaN")
        self.log.append(x.mean().item())
        return y


@pytest.mark.parametrize(
    ("kind", "words"), [("branch", "decides by"), ("loop", "decides by"), ("shape", "shape of nonzero")]
)
@pytest.mark.parametrize("attend", [None, right])
def test_a_number_that_decides_is_named_by_its_line(kind: str, words: str, attend: Any) -> None:
    """Whatever the first inputs are, and also if no core could be replaced."""
    with pytest.raises(impls.Unsupported, match=rf"{words}.*, at .*test_running\.py:[0-9]+"), torch.no_grad():
        InGraph(ByValues(kind).eval(), attend)(torch.randn(1, 5, 16))


def test_a_number_that_is_only_read_decides_nothing() -> None:
    """A log, and a check of the input, are in no graph."""
    layer, x = ByValues("log").eval(), torch.randn(1, 5, 16)
    with torch.no_grad():
        assert torch.equal(InGraph(layer)(x), layer(x))


def test_hooks_run_at_tracing_alone_and_that_is_said() -> None:
    """What a hook makes of an output is in the graph; what it does besides isn't done again."""
    layer, x, calls = Written(16).eval(), torch.randn(2, 5, 16), list[int]()
    assert InGraph(layer).said == ()

    def double(_module: nn.Module, _args: Any, y: Tensor) -> Tensor:
        calls.append(1)
        return 2 * y

    with torch.no_grad():
        expected = 2 * layer(x)
        layer.register_forward_hook(double)
        graph = InGraph(layer)
        graph(x)
        before = len(calls)
        assert torch.equal(graph(x), expected)
    assert len(calls) == before > 0
    assert any("hooks" in each for each in graph.said)
