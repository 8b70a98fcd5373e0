"""Find the attention cores of a graph, as calls of attention, and the softmaxes that belong to no core."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Graph, Node

from bench.modules.graph.products import Labels
from bench.modules.graph.reading import ATEN, BY_HAND, LARGE, LOWEST, Odd, Way, called, emitted, is_given, read, ways
from bench.modules.graph.tracing import (
    RETURNED,
    Traced,
    changed,
    dtype,
    is_mutable,
    is_tensor,
    name,
    place_of,
    reached,
    shape,
    traced,
    where,
)
from bench.plan.core import SDPA, UNFUSED, Core, Softmax

FUSED = re.compile(r"_scaled_dot_product_(?!.*backward)\w*attention\w*|flex_attention")
"""The names of operators that compute a whole core, other than torch's function."""

HIDDEN = -1e30
"""The score of a hidden key: so low that adding a usual score doesn't change it, but finite like the module's own."""

LATER = "hides later keys"
"""The words for a causal mask."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call of attention whose tensors are nodes of the graph."""

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
    mask: str
    """The effect of its mask in words."""

    @property
    def begin(self) -> Node:
        """The node of its first product."""
        return self.way.first.node

    @property
    def output(self) -> Node:
        """The node of its output."""
        return self.way.last.node

    @property
    def steps(self) -> list[Node]:
        """All nodes of the core."""
        return [self.begin, *self.way.inside, self.output]

    @property
    def is_causal(self) -> bool:
        """Whether its mask hides the later keys and nothing else, in every call."""
        return self.mask == LATER and not any(map(is_given, self.way.side))

    def as_call(self, graph: Graph) -> Call:
        """Return the core as a call of attention; new nodes go to the graph's insertion point. Raises `Odd`."""
        way = self.way
        first, last = way.first, way.last
        *lead, rows, columns = first.out
        if rows not in first.of_left or columns not in first.of_right or {rows, columns} & {*lead}:
            raise Odd("queries on the right of the product", first.node)
        is_left = last.left is way.weights
        of_weights, of_value = (last.of_left, last.of_right) if is_left else (last.of_right, last.of_left)
        width = [each for each in of_value if each not in of_weights]
        if last.summed != (of_weights[-1],) or len(width) != 1 or len(first.summed) != 1 or last.scale != 1:
            raise Odd("a last product over a dimension other than the keys", last.node)
        query = _headed(graph, first.left, first.of_left, (*lead, rows, *first.summed), first.sizes, way)
        key = _headed(graph, first.right, first.of_right, (*lead, columns, *first.summed), first.sizes, way)
        value = last.right if is_left else last.left
        value = _headed(graph, value, of_value, (*of_weights[:-2], of_weights[-1], *width), last.sizes, way)
        query, key = (cast(graph, each, dtype(value)) for each in (query, key))
        mask = None if way.mask is None or self.is_causal else self._mask(graph, dtype(value))
        if way.scale is None:
            query = called(graph, ATEN.mul.Tensor, query, cast(graph, self._factor(graph), dtype(value)))
        if way.has_empty_rows and mask is not None:
            hidden = called(graph, ATEN.le.Scalar, mask, _lowest(dtype(mask)) / 2)
            hidden = called(graph, ATEN.all.dim, hidden, -1, True)
            query, mask = (called(graph, ATEN.masked_fill.Scalar, each, hidden, 0.0) for each in (query, mask))
        scale = 1.0 if way.scale is None else way.scale
        return Call(query, key, value, scale, mask, self.is_causal, dropout=way.dropout)

    def _mask(self, graph: Graph, kind: torch.dtype) -> Node:
        mask = emitted(self.way, 0.0, graph)
        if self.way.has_empty_rows:  # hides in any dtype
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
        """Return a mask, or a factor, as `[B, H, N, M]`, with size 1 where it is broadcast."""
        *lead, rows, columns = shape(node)
        own, of = shape(self.begin)[:-2], self.way.lead
        if len(lead) > len(own) or not self.way.is_small:
            lead = [*of]
        elif of != own:  # items and heads share one dimension
            node, lead = called(graph, ATEN.expand.default, node, [*own, rows, columns]), [*of]
        *items, heads = lead or [1]
        if any(size > 1 for size in items) and len(items) > 1:
            *items, _ = of
            node = called(graph, ATEN.expand.default, node, [*items, heads, rows, columns])
        if len(of) == 1:
            items, heads = [heads], 1
        return reshaped(graph, node, [math.prod(items), heads, rows, columns])

    def returned(self, graph: Graph, output: Node) -> Node:
        """Return the output of attention in the layout and dtype of the last product."""
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
        raise Odd("different keys or values for each query", node)
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
    """Return a node reshaped to these sizes; unchanged if it has them."""
    return node if shape(node) == tuple(sizes) else called(graph, ATEN.reshape.default, node, [*sizes])


def cast(graph: Graph, node: Node, kind: torch.dtype) -> Node:
    """Return a node cast to a dtype; unchanged if it has it."""
    return node if dtype(node) == kind else called(graph, ATEN.to.dtype, node, kind)


@dataclass(frozen=True, eq=False)
class Fused:
    """A core that one operator computes; `output` is the node of its output, which may be one of several results."""

    begin: Node
    output: Node
    asked: Mapping[str, Any]
    mask: str = ""
    """The effect of its mask in words."""

    @property
    def steps(self) -> list[Node]:
        """The operator."""
        return [self.begin]

    @property
    def is_causal(self) -> bool:
        """Whether the operator is called with `is_causal`."""
        return bool(self.asked.get("is_causal"))

    @property
    def attn_mask(self) -> Node | None:
        """The mask that is passed to the operator."""
        mask = self.asked.get("attn_mask", self.asked.get("attn_bias"))
        return mask if is_tensor(mask) else None

    def as_call(self, graph: Graph) -> Call:
        """Return the core as a call of attention; new nodes go to the graph's insertion point."""
        query, key, value = (self.asked[each] for each in ("query", "key", "value"))
        sizes, scale, mask = shape(query), self.asked.get("scale"), self.attn_mask
        if mask is not None and len(sizes) != len("BHND"):
            mask = called(graph, ATEN.expand.default, mask, [*sizes[:-1], shape(key)[-2]])
            mask = _of_four(graph, mask)
        query, key, value = (_of_four(graph, each) for each in (query, key, value))
        scale = sizes[-1] ** -0.5 if scale is None else float(scale)
        has_groups, dropout = bool(self.asked.get("enable_gqa")), float(self.asked.get("dropout_p") or 0)
        return Call(query, key, value, scale, mask, self.is_causal, has_groups, dropout)

    def returned(self, graph: Graph, output: Node) -> Node:
        """Return the output of attention in the operator's shape."""
        return reshaped(graph, output, shape(self.output))


def _of_four(graph: Graph, node: Node) -> Node:
    """Return a tensor `[…, B, H, N, D]`, or one of fewer dimensions, as `[B, H, N, D]`."""
    *lead, rows, width = [1] * (len("BHND") - len(shape(node))) + [*shape(node)]
    if len(shape(node)) == len("BND"):
        lead = [shape(node)[0], 1]
    return reshaped(graph, node, [math.prod(lead[:-1]), lead[-1], rows, width])


def fused(node: Node) -> Fused | None:
    """Return the core that a single node computes; None if it computes none."""
    kind = name(node) if node.op == "call_function" else ""
    if kind != SDPA and not FUSED.fullmatch(kind):
        return None
    names = ["query", "key", "value"]
    if isinstance(node.target, torch._ops.OpOverload):
        names = [argument.name for argument in node.target._schema.arguments]
    output = node if is_tensor(node) else next((user for user in node.users if user.args[1:] == (0,)), None)
    return None if output is None else Fused(node, output, {**dict(zip(names, node.args, strict=False)), **node.kwargs})


@dataclass(frozen=True, eq=False)
class Site:
    """A core in a graph: its description and its nodes."""

    core: Core
    of: Written | Fused

    @property
    def first(self) -> Node:
        """The core's first node."""
        return self.of.begin

    @property
    def node(self) -> Node:
        """The node of the core's output."""
        return self.of.output


@dataclass(frozen=True, eq=False)
class Other:
    """A softmax in a graph that belongs to no core."""

    softmax: Softmax
    node: Node


@dataclass(frozen=True, eq=False)
class Found:
    """A graph, its cores in the order of the graph, and the softmaxes that belong to no core."""

    graph: Traced
    cores: tuple[Site, ...]
    unknown: tuple[Other, ...]


def look(module: Callable[..., Any], xs: Sequence[Tensor]) -> Found:
    """Trace a call of a module, and return its cores and other softmaxes; raises `Untraceable`."""
    return found(traced(module, xs))


def found(graph: Traced) -> Found:
    """Return the cores of a graph, and the softmaxes that belong to no core."""
    every, operators = [*ways(graph)], [*filter(None, map(fused, graph.module.graph.nodes))]
    known = [each for each in every if isinstance(each, Way)]
    reasons, values = read(graph, known, {of.attn_mask for of in operators if of.attn_mask})
    odd = dict(each for each in every if not isinstance(each, Way))
    odd |= {way.softmax: reason for way, reason in reasons.items()}
    written = [Written(way, _described(way.mask, way.side)) for way in known if way.softmax not in odd]
    masked = [
        replace(of, mask=_described(values[of.attn_mask], [of.attn_mask])) if of.attn_mask else of for of in operators
    ]
    both: list[Written | Fused] = [*written, *masked]
    order = {node: place for place, node in enumerate(graph.module.graph.nodes)}
    lasts, sites = {each.output for each in written}, list[Site]()
    outputs = graph.module.graph.find_nodes(op="output")
    needed = {*reached(outputs, lambda node: [] if node in lasts else node.all_input_nodes)}
    for of in both:
        try:
            sites.append(Site(_core(graph, of, lasts, needed, order), of))
        except Odd as reason:
            if isinstance(of, Written):
                odd[of.way.softmax] = reason
    unknown = (Other(_softmax(graph, node, odd[node]), node) for node in sorted(odd, key=order.__getitem__))
    return Found(graph, tuple(sorted(sites, key=lambda site: order[site.node])), tuple(unknown))


def _softmax(graph: Traced, node: Node, odd: Odd) -> Softmax:
    cap = "; flex_attention can compute this as a score_mod" if str(odd) in ("tanh", "sigmoid") else ""
    hint = "; call softmax instead, unless its sum has more in it" if str(odd) == BY_HAND else cap
    return Softmax(graph.with_weights(node), where(node), f"{odd} at {where(odd.node or node)}{hint}")


def _core(
    graph: Traced, of: Written | Fused, lasts: Collection[Node], needed: Collection[Node], order: Mapping[Node, int]
) -> Core:
    """Return the description of a core; raises `Odd` if it is no call of attention."""
    if isinstance(of, Written):
        obstacle, unread = _obstacle(of, lasts, needed, order), _unread(of, lasts)
    else:
        obstacle, unread = _obstacle_of_fused(of), ""
    with inserted(graph.module.graph, of.output, is_kept=False):
        call = of.as_call(graph.module.graph)
        layer = graph.with_weights(of.output)
        kind = type(graph.inner.get_submodule(layer))
        return Core(
            layer,
            f"nn.{kind.__name__}" if kind.__module__.startswith("torch.nn.") else kind.__name__,
            name(of.begin) if isinstance(of, Fused) else UNFUSED,
            tuple(map(shape, (call.query, call.key, call.value))),
            _short(call.value),
            call.scale,
            of.mask if call.mask is None else f"{of.mask}, {_short(call.mask)} {[*shape(call.mask)]}",
            call.is_causal,
            _lines(of.steps),
            obstacle,
            "" if obstacle else unread,
        )


def _obstacle(of: Written, lasts: Collection[Node], needed: Collection[Node], order: Mapping[Node, int]) -> str:
    """Return why the core can't be replaced: another use of its weights, or an in-place change; empty if it can."""
    own = {*of.way.inside}
    users = (user for node in (of.way.softmax, *of.way.after) for user in node.users)
    if again := next((user for user in users if user in needed and user not in own and user not in lasts), None):
        return f"its weights are used again at {where(again)}"
    for node in order:
        is_inside = order[of.begin] < order[node] < order[of.output]
        if is_inside and node not in own and is_mutable(node) and not _is_settled(node, of.way, order):
            return f"{name(node)}: memory is changed in place between its products at {where(node)}"
    return ""


def _is_settled(change: Node, way: Way, order: Mapping[Node, int]) -> bool:
    """Return whether a change is of memory made after the first product, and ends before the scores use it."""
    base = changed(change)
    users = {*reached([base] if base else [], lambda node: node.users)}
    met = min((order[node] for node in way.before if node in users), default=order[way.softmax])
    return base is not None and order[base] > order[way.first.node] and order[change] < met


def _obstacle_of_fused(of: Fused) -> str:
    if not isinstance(of.begin.target, torch._ops.OpOverload) and name(of.begin) != SDPA:
        return f"{name(of.begin)}: its own functions are not read"
    is_used = of.begin is not of.output and any(each.users for each in of.begin.users if each is not of.output)
    return f"{name(of.begin)} with several results" if is_used else ""


def _unread(of: Written, lasts: Collection[Node]) -> str:
    """Return the source line of a result made from the weights that a module returns beside its output; else empty."""
    weights = reached([of.way.softmax], lambda node: [each for each in node.users if each not in lasts])
    return next((where(node) for node in weights if RETURNED in node.meta), "")


def _described(values: Tensor | None, side: Sequence[Node]) -> str:
    """Return the effect of a mask in this call in words, empty without one; True in a boolean mask shows a key."""
    if values is None:
        return ""
    mask = torch.atleast_2d(values)
    hidden = ~mask if mask.dtype == torch.bool else mask <= LOWEST
    later = torch.ones(hidden.shape[-2:], dtype=torch.bool, device=mask.device).triu(1)
    does = []
    if mask.dtype != torch.bool and bool(((mask != 0) & ~hidden).any()):
        before = reached(side, lambda node: node.all_input_nodes)
        held = (getattr(each.graph.owning_module, str(each.target), None) for each in before if each.op == "get_attr")
        is_learned = not any(map(is_given, side)) and any(isinstance(each, nn.Parameter) for each in held)
        does = ["adds a learned bias" if is_learned else "adds a bias"]
    if len(later) > 1 and bool((hidden == later).all()):
        does.append(LATER)
    elif bool(hidden.any()):
        is_of_keys = bool((hidden == hidden[..., :1, :]).all())
        does.append("hides the same keys from all queries" if is_of_keys else "hides keys")
    return " and ".join(does) or "hides nothing in this call"


def _short(node: Node) -> str:
    """Return the dtype of a node's tensor, such as `float32`."""
    return str(dtype(node)).removeprefix("torch.")


@contextmanager
def inserted(graph: Graph, before: Node, *, is_kept: bool = True) -> Iterator[None]:
    """Insert new nodes before a node while the context lasts; remove them after an error, or if not `is_kept`."""
    end = before.prev
    with graph.inserting_before(before):
        try:
            yield
            end = before.prev if is_kept else end
        finally:
            while (node := before.prev) is not end:
                graph.erase_node(node)


def _lines(nodes: Sequence[Node]) -> str:
    """Return the source lines of nodes, as `a.py:12` or `a.py:12-15`; empty unless they are all in one file."""
    places = [place_of(node).rpartition(":") for node in nodes if place_of(node)]
    files, numbers = {file for file, _, _ in places}, {int(number) for _, _, number in places}
    return f"{min(files)}:{'-'.join(map(str, sorted({min(numbers), max(numbers)})))}" if len(files) == 1 else ""
