"""The attention cores of a graph, and the softmaxes that belong to none."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field, replace

import torch
from torch import nn
from torch.fx import Graph, Node

from bench.modules.graph.calls import Call
from bench.modules.graph.constants import constant, held
from bench.modules.graph.dimensions import Odd
from bench.modules.graph.expressing import Attention, attention
from bench.modules.graph.fused import SDPA, Fused, fused
from bench.modules.graph.masks import Mask, noted
from bench.modules.graph.memory import Memory
from bench.modules.graph.products import product
from bench.modules.graph.reach import is_learned, live, next_softmaxes, sums, what_it_is_over
from bench.modules.graph.scores import Blocked, Term, Way, softmaxes
from bench.modules.graph.tracing import Traced, dtype, frames, name, reached, shape, where
from bench.modules.graph.walking import Walk
from bench.modules.wrapper import Wrapper
from impls.catalogue import GIVEN, LEARNED

UNFUSED = "unfused"

HEADS = re.compile(r"(^|_)n?heads?($|_)")
"""The names of a module's attributes that may be numbers of heads."""


WINDOWS = (
    "if these are parts of a window, F.scaled_dot_product_attention of all queries and keys computes the same with a "
    "mask that hides what is outside, and flex_attention without computing what is outside"
)
SCORES = "flex_attention can compute this, as a score_mod"

HINTS = {"pad ": WINDOWS, "cat of ": WINDOWS, "slice": WINDOWS, "tanh ": SCORES, "sigmoid ": SCORES}
"""Hints by the first word of the reason why there is no core."""


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
    of: InitVar[Attention | Fused | None] = None

    def __post_init__(self, of: Attention | Fused | None) -> None:
        object.__setattr__(self, "_of", of)

    @property
    def found(self) -> Attention | Fused:
        """What the graph has of it: nodes, which are no fields."""
        of: Attention | Fused = vars(self)["_of"]
        return of

    @property
    def node(self) -> Node:
        """The node whose value is the core's output."""
        return self.found.output

    @property
    def first(self) -> Node:
        """The node with which the core begins."""
        return self.found.begin

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

    @property
    def hinted(self) -> str:
        """The reason, and what would express it, if that is known."""
        return "; ".join([self.reason, *(words for first, words in HINTS.items() if self.reason.startswith(first))])


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
    of_cores = {node for core in cores for node in core.found.chain[:1]}
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
            if core := fused(node):
                self._add(core)
            elif (first := product(node)) and first.summed and node not in self._mixing:
                for way in Walk(first, memory).ways():
                    self._note(way) if isinstance(way, Blocked) else self._add_way(way)

    def reason(self, softmax: Node) -> str:
        """Return why a softmax belongs to no core."""
        rank, reason = self._reasons.get(softmax, (0, ""))
        return (rank < 4 and sums(softmax)) or reason or what_it_is_over(softmax)

    def is_no_core(self, core: Core) -> bool:
        """Return whether a core's weights go to further products and elsewhere too, and note that."""
        softmaxes_of = [each.found.chain[:1] for each in self.cores.values()]
        is_one_of_several = core.weights_are_used and softmaxes_of.count(core.found.chain[:1]) > 1
        if is_one_of_several:
            self._because(core.found.chain[0], 5, core.obstacle)
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

    def _add_way(self, way: Way) -> None:
        """Add a core if the way can be expressed as attention."""
        try:
            core = attention(way)
            if core.value not in self._of_inputs and sum(dim.size > 1 for dim in core.lead) < 2:
                raise Odd("weights of parameters: a gate, no attention")
            if core.output not in self.cores:
                self._add(core)
        except Odd as odd:
            assert way.scores.softmax is not None
            self._because(way.scores.softmax, 3, f"{odd} at {where(odd.node or way.last.node)}")

    def _add(self, of: Attention | Fused) -> None:
        """Add a core; raises `Odd` if several operators compute it that can't be expressed."""
        nodes, obstacle, is_fused = self.graph.module.graph, of.obstacle, isinstance(of, Fused)
        with inserted(nodes, of.output, is_kept=False):
            try:
                call = of.as_call(nodes, self.memory)
            except Odd as odd:
                if not isinstance(of, Fused):
                    raise
                query, key, value = of.tensors
                call, obstacle = Call(query, key, value, scale=1.0), str(odd)
            layer = self.graph.with_weights(of.output)
            module, layer_input = self.graph.inner.get_submodule(layer), self.graph.layer_inputs.get(layer, ())
            tensors = of.tensors if isinstance(of, Fused) else (call.query, call.key, call.value)
            shapes, masks = tuple(map(shape, tensors)), tuple(each for term in call.terms for each in self._mask(*term))
            self.cores[of.output] = Core(
                layer=layer,
                class_name=type(module).__name__,
                layer_input=layer_input,
                operator=name(of.begin) if is_fused else UNFUSED,
                by_sdpa=is_fused and name(of.begin) == SDPA,
                shapes=shapes,
                strides=tuple(tuple(tensor.meta["val"].stride()) for tensor in tensors),
                dtype=str(dtype(tensors[0])).removeprefix("torch."),
                masks=masks,
                mask=" + ".join(map(str, masks)),
                causal=call.is_causal,
                dropout=call.dropout,
                lines=_lines(of.steps),
                heads=_heads(shapes[0], numbers_of_heads(module), layer_input[-1:]),
                obstacle=obstacle,
                sink=not isinstance(of, Fused) and of.scores.sink is not None,
                of=of,
            )

    def _mask(self, term: Term, tensor: Node) -> tuple[Mask, ...]:
        """Return what a term does as a mask, by its values if they don't take the whole model to know."""
        source = term.tensor
        assert source is not None
        has_gradient = dtype(source).is_floating_point and torch.is_grad_enabled() and is_learned(source)
        values = constant(tensor, self.memory, with_parameters=True, inputs=self._inputs)
        if has_gradient or values is None:
            kind = LEARNED if has_gradient else GIVEN
            return (Mask(kind, str(dtype(tensor)).removeprefix("torch."), shape(tensor)),)
        return noted(values.detach(), shows=term.shows, is_subtracted=term.weight < 0)


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
            place for place, core in enumerate(every) if not core.obstacle and needed.intersection(core.found.chain[:1])
        ]
        for place in again:  # by its place, because cores of two calls may be equal
            every[place] = _with_use(every[place], needed)
        if not again:
            return every


def _with_use(core: Core, needed: Collection[Node]) -> Core:
    chain = core.found.chain
    users = (user for node in chain for user in node.users if user in needed and user not in chain)
    at = next((where(user) for user in users if user is not core.node), "the end")
    return replace(core, obstacle=f"its weights are used again at {at}", weights_are_used=True, of=core.found)


def _lines(nodes: Sequence[Node]) -> str:
    """Return the lines of source of nodes, as `a.py:12` or `a.py:12-15`; empty if they are of several files."""
    every = [at for node in nodes for at in frames(node)[:1]]
    files, numbers = {at.file for at in every}, [at.line for at in every]
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
