"""The attention cores of a graph, as calls of attention, and the softmaxes that belong to none."""

import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Graph, Node

from bench.modules.graph.masks import LOWEST, Mask, noted
from bench.modules.graph.products import Labels
from bench.modules.graph.reading import ATEN, LARGE, Odd, Way, called, emitted, read, ways
from bench.modules.graph.tracing import Traced, dtype, frames, is_mutable, is_tensor, name, reached, shape, where
from impls.catalogue import CAUSAL, GIVEN, LEARNED

UNFUSED = "unfused"

SDPA = "scaled_dot_product_attention"

FUSED = re.compile(r"_scaled_dot_product_(?!.*backward)\w*attention\w*|flex_attention")
"""The names of the operators that compute a core alone, but for torch's function."""

HIDDEN = -1e30
"""The score of a hidden key, beside which a usual one is lost; it is finite, as the module's own."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call of attention: its tensors are nodes of the graph."""

    query: Node
    key: Node
    value: Node
    scale: float
    mask: Node | None = None
    is_causal: bool = False
    has_groups: bool = False
    dropout: float = 0.0

    @property
    def options(self) -> dict[str, Any]:
        """The keywords of the call, as `attend` takes them."""
        asked = {
            "attn_mask": self.mask,
            "mask": "causal" if self.is_causal else None,
            "enable_gqa": self.has_groups or None,
            "dropout_p": self.dropout or None,
        }
        return {keyword: value for keyword, value in asked.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Written:
    """A core that several operators compute."""

    way: Way
    masks: tuple[Mask, ...]
    obstacle: str = ""

    @property
    def begin(self) -> Node:
        """The node with which it begins."""
        return self.way.first.node

    @property
    def output(self) -> Node:
        """The node of its output."""
        return self.way.last.node

    @property
    def steps(self) -> list[Node]:
        """The nodes of its own."""
        return [self.begin, *self.way.inside, self.output]

    @property
    def is_causal(self) -> bool:
        """Whether its mask hides later keys alone, in every call."""
        is_fixed = not any(
            each.op == "placeholder" for each in reached(self.way.side, lambda node: node.all_input_nodes)
        )
        return is_fixed and [mask.kind for mask in self.masks] == [CAUSAL]

    def as_call(self, graph: Graph) -> Call:
        """Return it as a call of attention, whose tensors are made where nodes are inserted; raises `Odd`."""
        way = self.way
        first, last = way.first, way.last
        *lead, rows, columns = first.out
        if rows not in first.of_left or columns not in first.of_right or {rows, columns} & {*lead}:
            raise Odd("queries on the right of the product", first.node)
        is_left = last.left is way.weights
        of_weights, of_value = (last.of_left, last.of_right) if is_left else (last.of_right, last.of_left)
        width = [each for each in of_value if each not in of_weights]
        if last.summed != (of_weights[-1],) or len(width) != 1 or len(first.summed) != 1 or last.scale != 1:
            raise Odd("a last product over another dimension than that of keys", last.node)
        query = _headed(graph, first.left, first.of_left, (*lead, rows, *first.summed), first.sizes, way)
        key = _headed(graph, first.right, first.of_right, (*lead, columns, *first.summed), first.sizes, way)
        value = last.right if is_left else last.left
        value = _headed(graph, value, of_value, (*of_weights[:-2], of_weights[-1], *width), last.sizes, way)
        query, key = (cast(graph, each, dtype(value)) for each in (query, key))
        mask = None if way.mask is None or self.is_causal else self._mask(graph, dtype(value))
        if way.scale is None:
            query = called(graph, ATEN.mul.Tensor, query, cast(graph, self._factor(graph), dtype(value)))
        if way.has_empty_rows and mask is not None:
            hidden = called(
                graph, ATEN.all.dim, called(graph, ATEN.le.Scalar, mask, _lowest(dtype(mask)) / 2), -1, True
            )
            query, mask = (called(graph, ATEN.masked_fill.Scalar, each, hidden, 0.0) for each in (query, mask))
        scale = 1.0 if way.scale is None else way.scale
        return Call(query, key, value, scale, mask, self.is_causal, dropout=way.dropout)

    def _mask(self, graph: Graph, kind: torch.dtype) -> Node:
        mask = emitted(self.way, 0.0, graph)
        if self.way.has_empty_rows:  # a usual score is lost beside what hides, whatever the dtype is
            hidden = called(graph, ATEN.le.Scalar, mask, LOWEST)
            mask = called(graph, ATEN.masked_fill.Scalar, mask, hidden, _lowest(kind))
        return cast(graph, self._placed(graph, mask), kind)

    def _factor(self, graph: Graph) -> Node:
        """Return the factor of each query's scores."""
        large, zero = (emitted(self.way, score, graph) for score in (LARGE, 0.0))
        factor = called(graph, ATEN.div.Scalar, called(graph, ATEN.sub.Tensor, large, zero), LARGE)
        if shape(factor)[-1] > 1:
            factor = called(graph, ATEN.amax.default, called(graph, ATEN.nan_to_num.default, factor), [-1], True)
        return self._placed(graph, factor)

    def _placed(self, graph: Graph, node: Node) -> Node:
        """Return a mask, or a factor, as `[B, H, N, M]`, 1 where it is broadcast."""
        *lead, rows, columns = shape(node)
        own, of = shape(self.begin)[:-2], self.way.lead
        if len(lead) > len(own) or not self.way.is_small:
            lead = [*of]
        elif of != own:  # items and heads in one
            node, lead = called(graph, ATEN.expand.default, node, [*own, rows, columns]), [*of]
        *items, heads = lead or [1]
        if any(size > 1 for size in items) and len(items) > 1:
            *items, _ = of
            node = called(graph, ATEN.expand.default, node, [*items, heads, rows, columns])
        if len(of) == 1:
            items, heads = [heads], 1
        return reshaped(graph, node, [math.prod(items), heads, rows, columns])

    def returned(self, graph: Graph, output: Node) -> Node:
        """Return the output of attention as the last product returns it."""
        last = self.way.last
        of_weights, of_value = (
            (last.of_left, last.of_right) if last.left is self.way.weights else (last.of_right, last.of_left)
        )
        have = (*of_weights[:-1], *(each for each in of_value if each not in of_weights))
        node = reshaped(graph, output, [last.sizes[label] for label in have])
        order = [have.index(label) for label in last.out]
        node = node if order == sorted(order) else called(graph, ATEN.permute.default, node, order)
        return cast(graph, node, dtype(self.output))


def _lowest(kind: torch.dtype) -> float:
    return max(HIDDEN, torch.finfo(kind).min)


def _headed(graph: Graph, node: Node, labels: Labels, wanted: Labels, sizes: Mapping[str, int], way: Way) -> Node:
    """Return an operand of a product as `[B, H, N, D]`."""
    if {*labels} - {*wanted}:
        raise Odd("each query has keys or values of its own", node)
    have = [label for label in wanted if label in labels]
    order = [labels.index(label) for label in have]
    node = node if order == sorted(order) else called(graph, ATEN.permute.default, node, order)
    for place, label in enumerate(wanted):
        if label not in have:
            node = called(graph, ATEN.unsqueeze.default, node, place)
    node = called(graph, ATEN.expand.default, node, [sizes[label] for label in wanted])
    *items, heads = way.lead if len(way.lead) > 1 else [*way.lead, 1] if way.lead else [1, 1]
    return reshaped(graph, node, [math.prod(items), heads, *shape(node)[-2:]])


def reshaped(graph: Graph, node: Node, sizes: Sequence[int]) -> Node:
    """Return a node with these sizes: itself if it has them."""
    return node if shape(node) == tuple(sizes) else called(graph, ATEN.reshape.default, node, [*sizes])


def cast(graph: Graph, node: Node, kind: torch.dtype) -> Node:
    """Return a node of a type: itself if it has it."""
    return node if dtype(node) == kind else called(graph, ATEN.to.dtype, node, kind)


@dataclass(frozen=True, eq=False)
class Fused:
    """A core that one operator computes; `output` is the node of its output, which may be one of several results."""

    begin: Node
    output: Node
    asked: Mapping[str, Any]
    masks: tuple[Mask, ...] = ()
    obstacle: str = ""

    @property
    def steps(self) -> list[Node]:
        """The operator."""
        return [self.begin]

    @property
    def is_causal(self) -> bool:
        """Whether it hides later keys."""
        return bool(self.asked.get("is_causal"))

    @property
    def mask(self) -> Node | None:
        """The mask that it takes."""
        mask = self.asked.get("attn_mask", self.asked.get("attn_bias"))
        return mask if is_tensor(mask) else None

    def as_call(self, graph: Graph) -> Call:
        """Return it as a call of attention, whose tensors are made where nodes are inserted."""
        query, key, value = (self.asked[each] for each in ("query", "key", "value"))
        sizes, scale = shape(query), self.asked.get("scale")
        mask = self.mask
        if mask is not None and len(sizes) != len("BHND"):
            mask = called(graph, ATEN.expand.default, mask, [*sizes[:-1], shape(key)[-2]])
            mask = _of_four(graph, mask)
        query, key, value = (_of_four(graph, each) for each in (query, key, value))
        scale = sizes[-1] ** -0.5 if scale is None else float(scale)
        has_groups, dropout = bool(self.asked.get("enable_gqa")), float(self.asked.get("dropout_p") or 0)
        return Call(query, key, value, scale, mask, self.is_causal, has_groups, dropout)

    def returned(self, graph: Graph, output: Node) -> Node:
        """Return the output of attention as the operator returns it."""
        return reshaped(graph, output, shape(self.output))


def _of_four(graph: Graph, node: Node) -> Node:
    """Return a tensor `[…, B, H, N, D]`, or one of fewer dimensions, as `[B, H, N, D]`."""
    *lead, rows, width = [1] * (len("BHND") - len(shape(node))) + [*shape(node)]
    if len(shape(node)) == len("BND"):
        lead = [shape(node)[0], 1]
    return reshaped(graph, node, [math.prod(lead[:-1]), lead[-1], rows, width])


def fused(node: Node) -> Fused | None:
    """Return the core that a node computes alone, None if it computes none."""
    kind = name(node) if node.op == "call_function" else ""
    if kind != SDPA and not FUSED.fullmatch(kind):
        return None
    target, names = node.target, ["query", "key", "value"]
    if is_operator := isinstance(target, torch._ops.OpOverload):
        names = [argument.name for argument in target._schema.arguments]
    asked = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    taken = {user.args[1]: user for user in node.users if user.target is operator.getitem}
    output = node if is_tensor(node) else taken.get(0)
    others = "" if is_operator else f"{kind}: its programs are not read"
    if any(place != 0 and user.users for place, user in taken.items()):
        others = f"{kind} with several results"
    return None if output is None else Fused(node, output, asked, (), others)


@dataclass(frozen=True)
class Core:
    """One attention core of a graph.

    `layer` is the path of the innermost module with weights around it, `class_name` that module's class, and
    `layer_input` the shape of the module's first tensor.
    `operator` is the operator that computes it, UNFUSED if several do. `by_sdpa` is true if that is torch's function.
    `shapes` and `strides` are those of queries, keys and values as `[B, H, N, D]`, as far as the graph shows heads.
    `mask` has the dtypes and shapes of `masks` in words, and is empty without one. `causal` is true for a mask that
    hides later keys alone.
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
    scale: float = 1.0
    lines: str = ""
    """The lines of source that compute it: `/home/me/model.py:12-15`; empty if they are of several files."""
    heads: int = 0
    """The heads, if the shapes don't show them."""
    proposal: tuple[str, ...] = ()
    """The line that computes it by `F.scaled_dot_product_attention`, if several operators do."""
    obstacle: str = ""
    """Why no other core can be put in its place."""
    weights_are_used: bool = False
    """Whether it is no more than that its weights are used after the core too."""
    of: InitVar[Written | Fused | None] = None

    def __post_init__(self, of: Written | Fused | None) -> None:
        object.__setattr__(self, "_of", of)

    @property
    def found(self) -> Written | Fused:
        """What the graph has of it: nodes, which are no fields."""
        of: Written | Fused = vars(self)["_of"]
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
        """The reason, and what would express a cap of scores."""
        hint = (
            "; flex_attention can compute this, as a score_mod" if self.reason.startswith(("tanh", "sigmoid")) else ""
        )
        return self.reason + hint


@dataclass(frozen=True)
class Found:
    """The cores of a graph in their order, and the softmaxes that belong to none."""

    cores: tuple[Core, ...]
    unknown: tuple[Softmax, ...]


def found(graph: Traced) -> Found:
    """Return the cores of a graph, and the softmaxes that belong to none."""
    nodes = graph.module.graph
    every = [*ways(graph)]
    known = [each for each in every if isinstance(each, Way)]
    operators = [*filter(None, map(fused, nodes.nodes))]
    reasons, values = read(graph, known, {each.mask for each in operators if each.mask is not None})
    odd = dict(each for each in every if not isinstance(each, Way))
    odd |= {way.softmax: reason for way, reason in reasons.items()}
    good = [Written(way, _masks(way.mask, way.side)) for way in known if way.softmax not in odd]
    of_operators = [replace(of, masks=_masks(values[of.mask], [of.mask])) if of.mask else of for of in operators]
    cores: dict[Node, Core] = {}
    order = {node: place for place, node in enumerate(nodes.nodes)}
    both: list[Written | Fused] = [*good, *of_operators]
    for of in both:
        try:
            cores[of.output] = _core(graph, of, _obstacle(of, good, order))
        except Odd as reason:
            if isinstance(of, Written):
                odd[of.way.softmax] = reason
    unknown = tuple(
        Softmax(graph.with_weights(node), where(node), f"{reason} at {where(reason.node or node)}", node)
        for node, reason in sorted(odd.items(), key=lambda each: order[each[0]])
    )
    return Found(tuple(cores[node] for node in sorted(cores, key=order.__getitem__)), unknown)


def _obstacle(of: Written | Fused, every: Sequence[Written], order: Mapping[Node, int]) -> str:
    """Return what is in the way of another core: a use of the weights, or a change of memory in between."""
    if isinstance(of, Fused):
        return of.obstacle
    own, lasts = {*of.way.inside}, {each.output for each in every}
    outputs = of.begin.graph.find_nodes(op="output")
    needed = {*reached(outputs, lambda node: [] if node in lasts else node.all_input_nodes)}
    mine = {of.way.softmax, *of.way.after}
    users = [user for node in mine for user in node.users if user not in own and user not in lasts and user in needed]
    if users:
        return f"its weights are used again at {where(users[0])}"
    changed = (
        node
        for node in order
        if order[of.begin] < order[node] < order[of.output] and node not in own and is_mutable(node)
        if not _is_settled(node, of.way, order)
    )
    at = next(changed, None)
    return f"{name(at)}: memory is changed in place between its products at {where(at)}" if at else ""


def _is_settled(change: Node, way: Way, order: Mapping[Node, int]) -> bool:
    """Return whether a change is of memory that was made between the products, before the scores meet it."""
    base: Any = change.args[0]
    while base.op == "call_function" and is_tensor(base) and _is_view(base):
        base = base.args[0]
    users = {*reached([base], lambda node: node.users)}
    met = min((order[node] for node in way.before if node in users), default=order[way.softmax])
    return order[base] > order[way.first.node] and order[change] < met


def _is_view(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(each.alias_info for each in schema.returns)


def _core(graph: Traced, of: Written | Fused, obstacle: str) -> Core:
    with inserted(graph.module.graph, of.output, is_kept=False):
        if isinstance(of, Fused) and name(of.begin) == "flex_attention":
            call = Call(of.asked["query"], of.asked["key"], of.asked["value"], scale=1.0)
        else:
            call = of.as_call(graph.module.graph)
        layer = graph.with_weights(of.output)
        module = graph.inner.get_submodule(layer)
        tensors = (call.query, call.key, call.value)
        masks = of.masks
        return Core(
            layer,
            type(module).__name__,
            graph.layer_inputs.get(layer, ()),
            name(of.begin) if isinstance(of, Fused) else UNFUSED,
            isinstance(of, Fused) and name(of.begin) == SDPA,
            tuple(map(shape, tensors)),
            tuple(tuple(each.meta["val"].stride()) for each in tensors),
            str(dtype(call.value)).removeprefix("torch."),
            masks=masks,
            mask=" + ".join(map(str, masks)),
            causal=call.is_causal,
            dropout=call.dropout,
            scale=call.scale,
            lines=_lines(of.steps),
            obstacle=obstacle,
            weights_are_used=obstacle.startswith("its weights"),
            of=of,
        )


def _masks(values: Tensor | None, side: Sequence[Node]) -> tuple[Mask, ...]:
    """Return what a mask does in this call, by what it is made of: a bias of scores, and what it hides."""
    if values is None:
        return ()
    (known,) = noted(values)
    before = reached(side, lambda node: node.all_input_nodes)
    is_given = any(each.op == "placeholder" for each in before)
    parameters = (getattr(each.graph.owning_module, str(each.target), None) for each in before if each.op == "get_attr")
    is_learned = torch.is_grad_enabled() and not is_given and any(isinstance(each, nn.Parameter) for each in parameters)
    if known.kind != GIVEN:
        return (known,)
    bias = replace(known, kind=LEARNED if is_learned else GIVEN)
    hides = values <= LOWEST
    return (bias, *noted(~hides)) if bool(hides.any()) else (bias,)


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


def _lines(nodes: Sequence[Node]) -> str:
    """Return the lines of source of nodes, as `a.py:12` or `a.py:12-15`; empty if they are of several files."""
    every = [at for node in nodes for at in frames(node)[:1]]
    files, numbers = {at.file for at in every}, [at.line for at in every]
    return f"{min(files)}:{'-'.join(map(str, sorted({min(numbers), max(numbers)})))}" if len(files) == 1 else ""
