"""A module that runs the graph of its own call, and the check that the graph computes what the module does."""

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
"""The inputs of other values with which a graph is compared with its module."""

DECIDED = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
"""The tags of operators that read a number of a tensor, or whose shape follows from numbers."""

SPREAD = 2.5
"""The standard deviation of other values."""

OUTERMOST = ("", "inner")
"""The paths of the whole module, and of that in a wrapper."""

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
        return getattr(self.inner, "said", ())

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
        self._check_cores(graph)
        places = [*(where(site.node) for site, _ in made.left), *(each.softmax.lines for each in made.unknown)]
        returned = {where(node) for node in graph.module.graph.nodes if node.meta.get(RETURNED) in OUTERMOST}
        unread = [
            f"without the weights at {each.core.unread}" for each in made.replaced if each.core.unread in returned
        ]
        self.adapted_by = ", ".join(filter(None, (GRAPH, staying(places, len(made.replaced)), *unread[:1])))
        return made.module

    def _check_cores(self, graph: Traced) -> None:
        """Raise `Unsupported` unless the plain formula in place of the cores computes what the module does."""
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
    return f"{len(places)} of {len(places) + replaced} softmaxes stay, such as at {places[0]}"


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
        except RuntimeError:  # what follows may not fit another shape
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
    """Return other values of other sizes: random ones, or those of x in another order if they are whole numbers."""
    generator = torch.Generator(x.device).manual_seed(seed)
    if x.is_floating_point():
        size = SPREAD * 2.0 ** (2 * (seed % 3 - 1))
        return size * torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
    return x.flatten()[torch.randperm(x.numel(), generator=generator, device=x.device)].view_as(x)


def _is_same(y: Tensor, other: Tensor) -> bool:
    return are_same(other, y, SAME_OPERATORS_EPS * torch.finfo(y.dtype).eps if y.is_floating_point() else 0.0)
