"""The attention cores of a graph, and the softmaxes that belong to none."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import torch
from torch import nn
from torch.fx import Graph, Node

from impls.catalogue import GIVEN, LEARNED
from impls.graph import fused
from impls.graph.calls import Call, expressed
from impls.graph.constants import constant, held
from impls.graph.dimensions import Odd
from impls.graph.expressing import Attention, attention
from impls.graph.memory import Memory
from impls.graph.products import product
from impls.graph.reach import is_learned, live, next_softmaxes, sums, what_it_is_over
from impls.graph.scores import Blocked, Term, Way, softmaxes
from impls.graph.tracing import Traced, dtype, line, name, reached, shape, where
from impls.graph.walking import ways
from impls.modules.masks import Mask, noted
from impls.modules.wrapper import Wrapper

UNFUSED = "unfused"

HEADS = re.compile(r"(^|_)n?heads?($|_)")
"""The names of a module's attributes that may be numbers of heads."""


@dataclass(frozen=True)
class Core:
    """One attention core of a graph.

    `layer` is the path of the innermost module with weights around it, `class_name` that module's class, and
    `layer_input` the shape of the module's first tensor.
    `operator` is the operator that computes it, UNFUSED if several do. `by_sdpa` is true if that is torch's function.
    `shapes` and `strides` are those of queries, keys and values as `[B, H, N, D]`, as far as the graph shows heads.
    `mask` has the dtypes and shapes of `masks` in words, and is empty without one. `causal` is true for a mask that
    hides later keys alone. `sink` is true if columns stand beside the scores in the softmax.
    """

    layer: str
    class_name: str
    layer_input: tuple[int, ...]
    operator: str
    by_sdpa: bool
    shapes: tuple[tuple[int, ...], ...]
    strides: tuple[tuple[int, ...], ...]
    dtype: str
    masks: tuple[Mask, ...] = ()
    mask: str = ""
    causal: bool = False
    dropout: float = 0.0
    lines: str = ""
    """The lines of source that compute it: `/home/me/model.py:12-15`; empty if they are of several files."""
    heads: int = 0
    """The heads, if the shapes don't show them."""
    proposal: tuple[str, ...] = ()
    """The lines that compute it by `F.scaled_dot_product_attention`, if several operators do."""
    obstacle: str = ""
    """Why no other core can be put in its place."""
    weights_are_used: bool = False
    """Whether it is no more than that its weights are used after the core too."""
    sink: bool = False
    of: InitVar[Attention | fused.Fused | None] = None

    def __post_init__(self, of: Attention | fused.Fused | None) -> None:
        object.__setattr__(self, "_of", of)

    @property
    def found(self) -> Attention | fused.Fused:
        """What the graph has of it: nodes, which are no fields."""
        of: Attention | fused.Fused = vars(self)["_of"]
        return of

    @property
    def node(self) -> Node:
        """The node whose value is the core's output."""
        return self.found.last.node if isinstance(self.found, Attention) else self.found.output

    @property
    def first(self) -> Node:
        """The node with which the core begins."""
        return self.found.first.node if isinstance(self.found, Attention) else self.found.node

    @property
    def is_fused(self) -> bool:
        """Whether one operator computes the core alone."""
        return self.operator != UNFUSED


@dataclass(frozen=True)
class Softmax:
    """A softmax that belongs to no known core: the module, the lines of source, and why."""

    layer: str
    lines: str
    reason: str
    node: Node = field(compare=False)


@dataclass(frozen=True)
class Found:
    """The cores of a graph in their order, and the softmaxes that belong to none."""

    cores: tuple[Core, ...]
    unknown: tuple[Softmax, ...]


def found(graph: Traced) -> Found:
    """Return the cores of a graph, and the softmaxes that belong to none."""
    nodes = graph.module.graph
    memory = Memory(nodes)
    search = _Search(graph, memory)
    every = [search.cores[node] for node in sorted(search.cores, key=memory.order.__getitem__)]
    cores = [core for core in _used(every, memory) if not search.is_no_core(core)]
    of_cores = {core.found.scores.softmax for core in cores if isinstance(core.found, Attention)}
    unknown = tuple(
        Softmax(graph.with_weights(node), where(node), search.reason(node), node)
        for node in softmaxes(nodes)
        if node not in of_cores
    )
    return Found(tuple(cores), unknown)


class _Search:
    """The cores of a graph by their last nodes, and why softmaxes belong to none."""

    def __init__(self, graph: Traced, memory: Memory) -> None:
        self.graph = graph
        self.memory = memory
        self.cores: dict[Node, Core] = {}
        self._reasons: dict[Node, tuple[int, str]] = {}
        self._mixing: set[Node] = set()
        self._inputs = graph.inputs_by_node()
        self._of_inputs = {*reached([*self._inputs, *_arguments(graph)], lambda node: node.users)}
        for node in graph.module.graph.nodes:
            if core := fused.fused(node):
                self._add_fused(core)
            elif (first := product(node)) and first.summed and node not in self._mixing:
                for way in ways(first, memory):
                    self._note(way) if isinstance(way, Blocked) else self._add(way)

    def reason(self, softmax: Node) -> str:
        """Return why a softmax belongs to no core."""
        rank, reason = self._reasons.get(softmax, (0, ""))
        return (rank < 4 and sums(softmax)) or reason or what_it_is_over(softmax)

    def is_no_core(self, core: Core) -> bool:
        """Return whether a core's weights go to further products and elsewhere too, and note that."""
        if not core.weights_are_used or not isinstance(core.found, Attention):
            return False
        softmax = core.found.scores.softmax
        every = (each.found for each in self.cores.values())
        is_one_of_several = sum(isinstance(of, Attention) and of.scores.softmax is softmax for of in every) > 1
        if is_one_of_several and softmax is not None:
            self._because(softmax, 5, core.obstacle)
        return is_one_of_several

    def _because(self, softmax: Node, rank: int, reason: str) -> None:
        if rank > self._reasons.get(softmax, (0, ""))[0]:
            self._reasons[softmax] = rank, reason

    def _note(self, blocked: Blocked) -> None:
        """Note what is in the way of a softmax, or of those that come soon."""
        reason = f"{blocked.reason} at {where(blocked.node)}"
        if blocked.is_mixed:
            self._mixing.add(blocked.user)
        if blocked.scores.softmax is not None:
            self._because(blocked.scores.softmax, 4, reason)
        elif name(blocked.scores.product.node) != "linear":
            for softmax in next_softmaxes(blocked.user):
                is_as_large = blocked.scores.layout.numel() == softmax.meta["val"].numel()
                self._because(softmax, 2 if is_as_large else 1, reason)

    def _add(self, way: Way) -> None:
        """Add a core if the way can be expressed as attention."""
        softmax = way.scores.softmax
        assert softmax is not None
        try:
            core = attention(way)
            if core.value not in self._of_inputs and sum(dim.size > 1 for dim in core.lead) < 2:
                raise Odd("weights of parameters: a gate, no attention")
            nodes = self.graph.module.graph
            with inserted(nodes, core.last.node, is_kept=False):
                self.cores.setdefault(core.last.node, self._core(core, expressed(core, nodes, self.memory)))
        except Odd as odd:
            self._because(softmax, 3, f"{odd} at {where(odd.node or way.last.node)}")

    def _core(self, core: Attention, call: Call) -> Core:
        masks = tuple(mask for term, tensor in call.terms for mask in self._masks(term, tensor))
        steps = [core.first.node, *(term.at for term in core.scores.terms), core.scores.softmax, core.last.node]
        return self._described(
            core,
            core.last.node,
            (call.query, call.key, call.value),
            operator=UNFUSED,
            masks=masks,
            causal=call.is_causal,
            dropout=call.dropout,
            lines=_lines([node for node in steps if node is not None]),
            sink=core.scores.sink is not None,
        )

    def _add_fused(self, core: fused.Fused) -> None:
        mask, is_causal, obstacle = core.mask, core.is_causal, core.obstacle
        if name(core.node) == fused.FLEX:
            try:
                nodes = self.graph.module.graph
                with inserted(nodes, core.node, is_kept=False):
                    is_causal = fused.as_call(core, nodes, self.memory).is_causal
            except Odd as odd:
                obstacle = str(odd)
        self.cores[core.output] = self._described(
            core,
            core.node,
            core.tensors,
            operator=name(core.node),
            by_sdpa=core.is_torchs_function,
            masks=() if mask is None else self._mask(mask, mask, shows=True, weight=1),
            causal=is_causal,
            dropout=core.dropout,
            lines=_lines([core.node]),
            obstacle=obstacle,
        )

    def _described(self, of: Attention | fused.Fused, node: Node, tensors: Sequence[Node], **facts: Any) -> Core:
        layer = self.graph.with_weights(node)
        module, shapes = self.graph.inner.get_submodule(layer), tuple(map(shape, tensors))
        layer_input = self.graph.layer_inputs.get(layer, ())
        return Core(
            layer=layer,
            class_name=type(module).__name__,
            layer_input=layer_input,
            shapes=shapes,
            strides=tuple(tuple(tensor.meta["val"].stride()) for tensor in tensors),
            dtype=str(dtype(tensors[0])).removeprefix("torch."),
            mask=" + ".join(map(str, facts.get("masks", ()))),
            heads=_heads(shapes[0], numbers_of_heads(module), layer_input[-1:]),
            of=of,
            **{"by_sdpa": False, **facts},
        )

    def _masks(self, term: Term, tensor: Node) -> tuple[Mask, ...]:
        assert term.tensor is not None
        return self._mask(term.tensor, tensor, shows=term.shows, weight=term.weight)

    def _mask(self, source: Node, tensor: Node, *, shows: bool, weight: float) -> tuple[Mask, ...]:
        """Return what a tensor does as a mask, by its values if they don't take the whole model to know."""
        has_gradient = dtype(source).is_floating_point and torch.is_grad_enabled() and is_learned(source)
        values = constant(tensor, self.memory, with_parameters=True, inputs=self._inputs)
        if has_gradient or values is None:
            kind = LEARNED if has_gradient else GIVEN
            return (Mask(kind, str(dtype(tensor)).removeprefix("torch."), shape(tensor)),)
        return noted(values.detach(), shows=shows, is_subtracted=weight < 0)


@contextmanager
def inserted(graph: Graph, before: Node, *, is_kept: bool = True) -> Iterator[None]:
    """Insert nodes before one inside; after an error, or if they aren't kept, they are removed."""
    end = before.prev
    with graph.inserting_before(before):
        try:
            yield
            end = before.prev if is_kept else end
        finally:
            while (node := before.prev) is not end:
                graph.erase_node(node)


def _used(cores: Sequence[Core], memory: Memory) -> list[Core]:
    """Return cores; those whose weights are still needed if all cores are replaced have an obstacle."""
    every = list(cores)
    while True:
        needed = live({core.node: core.found.operands for core in every if not core.obstacle}, memory)
        again = [
            place
            for place, core in enumerate(every)
            if not core.obstacle and isinstance(core.found, Attention) and core.found.scores.softmax in needed
        ]
        for place in again:  # by its place, because cores of two calls may be equal
            every[place] = _with_use(every[place], needed)
        if not again:
            return every


def _with_use(core: Core, needed: Collection[Node]) -> Core:
    assert isinstance(core.found, Attention)
    scores = core.found.scores
    chain = [scores.softmax, *scores.weights]
    users = (user for node in chain if node for user in node.users if user in needed and user not in chain)
    at = next((where(user) for user in users if user is not core.node), "the end")
    return replace(core, obstacle=f"its weights are used again at {at}", weights_are_used=True, of=core.found)


def _lines(nodes: Sequence[Node]) -> str:
    """Return the lines of source of nodes, as `a.py:12` or `a.py:12-15`; empty if they are of several files."""
    lines = [at for at in map(line, nodes) if at]
    files, numbers = {file for file, _ in lines}, [number for _, number in lines]
    return f"{min(files)}:{'-'.join(map(str, sorted({min(numbers), max(numbers)})))}" if len(files) == 1 else ""


def numbers_of_heads(module: nn.Module) -> set[int]:
    """Return the numbers that a module's attributes say of its heads."""
    return {value for key, value in vars(module).items() if type(value) is int and HEADS.search(key)}


def _heads(sizes: Sequence[int], stated: Collection[int], layer_width: Sequence[int]) -> int:
    """Return the heads of queries of more than four dimensions: the one axis that has as many as stated.

    Otherwise the one that fills the width of the layer; 1 if none is known, 0 if there are four dimensions at most.
    """
    if len(sizes) <= len("BHND"):
        return 0
    *_, width = sizes
    axes = {*sizes[1:-2]}
    for possible in (axes & {*stated}, {size for size in axes if size * width in layer_width}):
        if len(possible) == 1:
            return possible.pop()
    return 1


def _arguments(graph: Traced) -> Iterator[Node]:
    """Yield the nodes of those tensors that a measured module holds because a call of it gets them as arguments."""
    wrappers = (each for each in graph.inner.modules() if isinstance(each, Wrapper))
    arguments = {id(tensor) for each in wrappers for tensor in each.arguments}
    for node in graph.module.graph.nodes:
        if node.op == "get_attr" and id(held(node)) in arguments:
            yield node
