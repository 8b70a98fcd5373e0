"""A module that runs the graph of its own call, and the check that the graph computes what the module does."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Interpreter, Node

from bench.modules.graph.rewriting import rewritten
from bench.modules.graph.tracing import Traced, fill, forked, name, traced, where, without_traces
from bench.modules.wrapper import first_tensor
from impls.catalogue import GRAPH
from impls.contract import Attend, Implementation, Unsupported, declared_options
from impls.sameness import SAME_OPERATORS_EPS, are_same

TRIALS = 2
"""The inputs of other values with which a graph is compared with its module."""

DECISIONS = 32
"""The inputs of other values for which numbers that a call reads are compared: most decisions differ for half of them.
"""

DIFFERING = 8
"""Of those for which they differ, so many are compared with the module: a number may be read for a log."""

DECIDES = "the module decides by the values of its inputs"

DECIDED = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
"""The tags of operators that read a number of a tensor, or whose shape follows from numbers."""

SPREAD = 2.5
"""The standard deviation of other values."""

Xs = Sequence[Tensor]


class InGraph(nn.Module):
    """A module that runs the graph of its own call, traced at the first call with inputs of their shapes.

    `attend` computes the cores of the graph; None leaves the graph as it is. It gets those of CORE_KEYWORDS that a core
    asks for. The first call raises `Unsupported` if the graph isn't the module for other values of the inputs, or if no
    core can be replaced. `adapted_by` says how many softmaxes stay as they are.
    """

    def __init__(self, inner: nn.Module, attend: Attend | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.attend = attend
        self.adapted_by = GRAPH
        self.training = inner.training
        self.graphs: dict[Any, Callable[..., Tensor]] = {}
        self._compiled: dict[str, Any] | None = None

    @property
    def said(self) -> tuple[str, ...]:
        """What a reader must know of a call of the module, as a wrapper says it."""
        hooked = [path.removeprefix("inner.") for path, each in self.inner.named_modules() if each._forward_hooks]
        words = [f"forward hooks, as of {hooked[0] or 'the module'}, run at tracing alone"] if hooked else []
        return (*getattr(self.inner, "said", ()), *words)

    def forward(self, *xs: Tensor) -> Tensor:
        """Return what the graph of these inputs returns."""
        modes = self.training, torch.is_grad_enabled(), torch.is_autocast_enabled()
        key = (*modes, *((x.shape, x.dtype, x.device) for x in xs))
        if key not in self.graphs:
            self.graphs[key] = self._made(xs)
        return self.graphs[key](*xs)

    def trial(self, *xs: Tensor) -> Tensor:
        """Return what the graph of these inputs returns, which is not kept: other inputs may take another way."""
        graph = traced(self.inner, xs)
        try:
            y: Tensor = (graph.module if self.attend is None else self._rewritten(graph)).forward(*xs)
        except Unsupported:
            check(graph, self.inner, xs)  # the shapes that a call has by its values are no core's
            raise
        return y

    def compile(self, **options: Any) -> None:
        """Have the graphs compiled; `options` are passed to `torch.compile`."""
        self._compiled = options
        self.graphs = {}

    def _made(self, xs: Xs) -> Callable[..., Tensor]:
        fill(self.inner, xs)
        graph = traced(self.inner, xs)
        check(graph, self.inner, xs)
        module = graph.module if self.attend is None else self._rewritten(graph)
        if self._compiled is not None:
            return torch.compile(module, **self._compiled)
        return module.forward  # a call of the module would print what an attend raises

    def _rewritten(self, graph: Traced) -> GraphModule:
        assert self.attend is not None
        made = rewritten(graph, _by_name(self.attend))
        places = [*(where(core.node) for core, _ in made.left), *(each.lines for each in made.unknown)]
        left_out = [f"without what {name(node)} at {where(node)} makes of scores" for node in made.left_out[:1]]
        self.adapted_by = ", ".join(filter(None, (GRAPH, staying(places, len(made.replaced)), *left_out)))
        return made.module

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        """Change the tensors, and forget the graphs, which hold them."""
        self.graphs = {}
        return super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]  # torch's own

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy gets: it traces anew, because its tensors may be others."""
        return {**vars(self), "graphs": {}}


def unchanged(layer: nn.Module) -> Implementation:
    """Return the layer as the graph of its call, with its cores unchanged: it shows what tracing alone does."""
    return InGraph(layer)


def staying(places: Sequence[str], replaced: int) -> str:
    """Return how many softmaxes stay as they were at these places, beside so many cores; empty if none does."""
    if not places:
        return ""
    return f"{len(places)} of {len(places) + replaced} softmaxes stay, as that at {places[0]}"


def _by_name(attend: Attend) -> Attend:
    """Return an attend as a function with a name, which the code of a graph calls; it declares the same."""
    if hasattr(attend, "__name__"):
        return attend

    def named(*args: Any, **kwargs: Any) -> Tensor:
        o: Tensor = attend(*args, **kwargs)
        return o

    named.options = declared_options(attend)  # type: ignore[attr-defined]  # functions take attributes
    return named


def check(graph: Traced, inner: nn.Module, xs: Xs) -> None:
    """Raise `Unsupported` if a second call of the module, or its graph for other values, computes something else."""
    if not _is_same(*_twice(inner, xs)):
        raise Unsupported(
            "a second call on the same input returns something else: the module keeps something from call to call, or "
            "draws random numbers by another generator than torch's"
        )
    for seed in range(TRIALS):
        others = [other_values(x, seed) for x in xs]
        if not _is_right(graph, inner, others):
            raise Unsupported(_decision(graph, inner, xs, [others]) or _why_wrong(graph, inner, xs, others))
    if any(map(_is_decided, graph.module.graph.nodes)):
        every = ([_scaled(x, seed) for x in xs] for seed in range(DECISIONS))
        if reason := _decision(graph, inner, xs, every):
            raise Unsupported(reason)


def _is_right(graph: Traced, inner: nn.Module, xs: Xs) -> bool:
    """Return whether a graph computes what the module does; one that can't be run on other values doesn't."""
    y = _output(inner, inner, xs)
    try:
        return _is_same(y, _output(graph.module.forward, inner, xs))
    except RuntimeError:  # what follows may not fit another shape
        return False


def _why_wrong(graph: Traced, inner: nn.Module, xs: Xs, others: Xs) -> str:
    """Say why a graph computes something else than its module, as far as other inputs and the same ones show it."""
    difference = _difference(graph, inner, others)
    if difference or _is_right(graph, inner, xs):
        return f"{DECIDES}{difference}"
    return "its graph computes something else for the same input: a call uses what no operator on tensors shows"


def _decision(graph: Traced, inner: nn.Module, xs: Xs, every: Iterable[Xs]) -> str:
    """Return where values decide what a module computes, in words; empty if no inputs show it.

    Those are looked at of which the call reads another number, or has another shape.
    """
    own, left = _decisions(graph, inner, xs), DIFFERING
    for others in every:
        pairs = zip(own, _decisions(graph, inner, others), strict=False)
        node = next((node for (node, value), (_, other) in pairs if value != other), None)
        if node and not _is_right(graph, inner, others):
            is_shape = torch.Tag.dynamic_output_shape in _tags(node)
            what = f"the shape of {name(node)} depends on the values of its inputs" if is_shape else DECIDES
            return f"{what}, at {where(node)}"
        left -= node is not None
        if not left:
            break
    return ""


def _is_decided(node: Node) -> bool:
    """Return whether a node reads a number of a tensor, or has a shape that follows from numbers."""
    return bool(DECIDED & _tags(node))


def _tags(node: Node) -> set[Any]:
    return {*getattr(node.target, "tags", ())}


class _Decisions(Interpreter):
    """Runs a graph, and notes each number that it reads, and each shape that follows from numbers."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.found: list[tuple[Node, Any]] = []

    def run_node(self, n: Node) -> Any:
        """Compute a node, and note what it is if numbers decide it."""
        value = super().run_node(n)
        if _is_decided(n):
            self.found.append((n, value.shape if isinstance(value, Tensor) else repr(value)))
        return value


def _decisions(graph: Traced, inner: nn.Module, xs: Xs) -> list[tuple[Node, Any]]:
    """Return what numbers decide in a call, as far as the graph can be run on inputs."""
    run = _Decisions(graph.module)
    with without_traces(inner, xs), contextlib.suppress(Exception):  # what follows may not fit another shape
        run.run(*(x.clone() for x in xs))
    return run.found


def _twice(inner: nn.Module, xs: Xs) -> tuple[Tensor, Tensor]:
    """Return the outputs of two calls with the same random numbers; the second one has what the first one keeps."""
    with without_traces(inner, xs):
        with forked(xs):
            y = first_tensor(inner(*(x.clone() for x in xs)))
        return y, first_tensor(inner(*(x.clone() for x in xs)))


def _output(call: Callable[..., Any], inner: nn.Module, xs: Xs) -> Tensor:
    with without_traces(inner, xs):
        return first_tensor(call(*(x.clone() for x in xs)))


def _scaled(x: Tensor, seed: int) -> Tensor:
    """Return other values of other sizes."""
    return 2.0 ** (seed % 8 - 4) * other_values(x, seed) if x.is_floating_point() else other_values(x, seed)


def other_values(x: Tensor, seed: int) -> Tensor:
    """Return other values: random ones, or those of x in another order if they are whole numbers."""
    generator = torch.Generator(x.device).manual_seed(seed)
    if x.is_floating_point():
        return SPREAD * torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
    return x.flatten()[torch.randperm(x.numel(), generator=generator, device=x.device)].view_as(x)


def _is_same(y: Tensor, other: Tensor) -> bool:
    return are_same(other, y, SAME_OPERATORS_EPS * torch.finfo(y.dtype).eps if y.is_floating_point() else 0.0)


def _difference(graph: Traced, inner: nn.Module, xs: Xs) -> str:
    """Return where the graph of a call on other inputs differs, in words; empty if it doesn't."""
    for node, other in zip(graph.module.graph.nodes, traced(inner, xs).module.graph.nodes, strict=False):
        if _signature(node) != _signature(other):
            at = "" if node.op == "output" else f" from {name(node)} at {where(node)} on"
            return f": its calls differ{at}"
    return ""


def _signature(node: Node) -> tuple[Any, ...]:
    """Return what a node computes: its operator, the places of its inputs, and its numbers."""
    return node.op, name(node), str(node.args), str(node.kwargs)
