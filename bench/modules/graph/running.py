"""A module that runs the graph of its own call, and the check that this graph equals the module."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from bench.modules.graph.rewriting import rewritten
from bench.modules.graph.tracing import RETURNED, Traced, fill, forked, traced, where, without_traces
from bench.modules.wrapper import first_tensor
from impls.attend import eager
from impls.catalogue import GRAPH
from impls.contract import Attend, Implementation, Unsupported, declared_options
from impls.sameness import SAME, SAME_OPERATORS_EPS, are_same

TRIALS = 4
"""The number of other inputs on which a graph is compared with its module."""

DECIDED = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
"""The tags of operators whose result, or its shape, depends on values of a tensor."""

SPREAD = 2.5
"""The standard deviation of those inputs; it is multiplied by 1/4, 1 or 4."""

OUTERMOST = ("", "inner")
"""The paths of the whole module, and of the module in a wrapper."""

Xs = Sequence[Tensor]


class InGraph(nn.Module):
    """A module that runs the graph of its own call, traced at the first call with inputs of their shapes.

    `attend` computes the cores of the graph and gets the CORE_KEYWORDS that a core needs; None leaves the graph as it
    is. The first call raises `Unsupported` if the graph differs from the module for other values of the inputs, or if
    no core can be replaced. `adapted_by` says how many softmaxes stay.
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
        """The remarks of the wrapper inside."""
        return getattr(self.inner, "said", ())

    def forward(self, *xs: Tensor) -> Tensor:
        """Run the graph for inputs like these; the first such call traces it."""
        modes = self.training, torch.is_grad_enabled(), torch.is_autocast_enabled()
        key = (*modes, *((x.shape, x.dtype, x.device) for x in xs))
        if key not in self.graphs:
            self.graphs[key] = self._made(xs)
        return self.graphs[key](*xs)

    def trial(self, *xs: Tensor) -> Tensor:
        """Trace and run a graph for these inputs once, without keeping it: other values may need another graph."""
        graph = traced(self.inner, xs)
        try:
            y: Tensor = (graph.module if self.attend is None else self._rewritten(graph)).forward(*xs)
        except Unsupported:
            check(graph, self.inner, xs)  # a module that decides by values has the better reason
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
        made = rewritten(graph, _named(self.attend))
        self._check_cores(graph)
        places = [*(where(site.node) for site, _ in made.left), *(each.softmax.lines for each in made.unknown)]
        returned = {where(node) for node in graph.module.graph.nodes if node.meta.get(RETURNED) in OUTERMOST}
        unread = [
            f"without the weights at {each.core.unread}" for each in made.replaced if each.core.unread in returned
        ]
        self.adapted_by = ", ".join(filter(None, (GRAPH, staying(places, len(made.replaced)), *unread[:1])))
        return made.module

    def _check_cores(self, graph: Traced) -> None:
        """Raise `Unsupported` unless the graph with the plain formula in place of its cores equals the module."""
        if self.inner.training:
            return  # dropout
        plain = rewritten(graph, eager.attend_safely).module
        for seed in range(TRIALS // 2):
            others = [other_values(x, seed) for x in graph.xs]
            y, ours = (_output(each, self.inner, others) for each in (self.inner, plain.forward))
            most = max(SAME, 4 * SAME_OPERATORS_EPS * torch.finfo(y.dtype).eps)
            if bool(y.isfinite().all()) and not are_same(ours, y, most):
                raise Unsupported(
                    "the module's core can't be replaced, because the plain formula computes something else"
                )

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        """Change the tensors, and drop the graphs, which hold them."""
        self.graphs = {}
        return super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]  # torch's own

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy without graphs, because its tensors may be others."""
        return {**vars(self), "graphs": {}}


def unchanged(layer: nn.Module) -> Implementation:
    """Return the layer as the graph of its call, with its cores unchanged, to measure the effect of tracing alone."""
    return InGraph(layer)


def staying(places: Sequence[str], replaced: int) -> str:
    """Return in words how many softmaxes stay at these places, beside the replaced ones; empty if none does."""
    if not places:
        return ""
    return f"{len(places)} of {len(places) + replaced} softmaxes stay, such as at {places[0]}"


def _named(attend: Attend) -> Attend:
    """Return an attend as a function with a name, which a graph's code needs, and with the same options."""
    if hasattr(attend, "__name__"):
        return attend

    def named(*args: Any, **kwargs: Any) -> Tensor:
        o: Tensor = attend(*args, **kwargs)
        return o

    named.options = declared_options(attend)  # type: ignore[attr-defined]  # functions take attributes
    return named


def check(graph: Traced, inner: nn.Module, xs: Xs) -> None:
    """Raise `Unsupported` if a second call of the module, or the graph on other values, differs from the module."""
    with without_traces(inner, xs):
        with forked(xs):
            y = first_tensor(inner(*(x.clone() for x in xs)))
        again = first_tensor(inner(*(x.clone() for x in xs)))
    if not _is_same(y, again):
        raise Unsupported(
            "a second call on the same input returns something else, so the module keeps state between calls, or draws "
            "random numbers without torch's generator"
        )
    for seed in range(TRIALS):
        others = [other_values(x, seed) for x in xs]
        y = _output(inner, inner, others)
        try:
            is_right = _is_same(y, _output(graph.module.forward, inner, others))
        except RuntimeError:  # other values may give shapes that don't fit the graph
            is_right = False
        if not is_right:
            node = next(
                (each for each in graph.module.graph.nodes if DECIDED & {*getattr(each.target, "tags", ())}), None
            )
            raise Unsupported(f"the module branches on the values of its inputs{f', at {where(node)}' if node else ''}")


def _output(call: Callable[..., Any], inner: nn.Module, xs: Xs) -> Tensor:
    with without_traces(inner, xs):
        return first_tensor(call(*(x.clone() for x in xs)))


def other_values(x: Tensor, seed: int) -> Tensor:
    """Return random values of another scale; for integers, the values of x in another order."""
    generator = torch.Generator(x.device).manual_seed(seed)
    if x.is_floating_point():
        size = SPREAD * 2.0 ** (2 * (seed % 3 - 1))
        return size * torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
    return x.flatten()[torch.randperm(x.numel(), generator=generator, device=x.device)].view_as(x)


def _is_same(y: Tensor, other: Tensor) -> bool:
    return are_same(other, y, SAME_OPERATORS_EPS * torch.finfo(y.dtype).eps if y.is_floating_point() else 0.0)
