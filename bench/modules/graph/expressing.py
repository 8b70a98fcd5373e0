"""A way through a softmax as attention: its queries, keys and values, by their dimensions, and as a call."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Graph, Node

from bench.modules.graph.calls import Call, with_kind
from bench.modules.graph.constants import constant
from bench.modules.graph.dimensions import (
    ATEN,
    Dim,
    Dims,
    Odd,
    before_flattening,
    before_repeat,
    called,
    cast,
    expanded,
    rearranged,
    reshaped,
)
from bench.modules.graph.memory import Memory
from bench.modules.graph.products import Labels, Product
from bench.modules.graph.scores import ADD, FACTOR, HIDE, ROW, TIMES, Scores, Term, Way
from bench.modules.graph.tracing import dtype, name, shape

WIDTH, VALUES, COLUMNS = "width", "values", "columns"
"""The axes that scores don't have: the width of queries and keys, that of values, and columns beside the scores."""


HIDDEN = -1e30
"""The score of a hidden key, beside which a usual one is lost; it is finite, as the module's own."""


@dataclass(frozen=True, eq=False)
class Attention:
    """A core by the labels and dimensions of its tensors.

    `rows` and `columns` are the dimensions of queries and keys in the scores, `lead` those of items and heads.
    """

    way: Way
    query: Node
    key: Node
    value: Node
    of_query: Labels
    of_key: Labels
    of_value: Labels
    query_label: str
    key_label: str
    value_label: str
    summed_label: str
    rows: Dim
    columns: Dim
    lead: Dims
    weights: dict[str, Dim]
    """The dimensions of the weights by the labels of the last product."""
    obstacle: str = ""

    @property
    def begin(self) -> Node:
        """The node with which it begins."""
        return self.first.node

    @property
    def output(self) -> Node:
        """The node of its output."""
        return self.last.node

    @property
    def chain(self) -> list[Node]:
        """Its softmax, and the nodes that hold weights."""
        return [node for node in (self.scores.softmax, *self.scores.weights) if node]

    @property
    def steps(self) -> list[Node]:
        """Its products, its softmax, and the operators on scores between them."""
        steps = (self.begin, *(term.at for term in self.scores.terms), self.scores.softmax, self.output)
        return [node for node in steps if node]

    @property
    def operands(self) -> list[Node]:
        """The nodes from which attention computes the output."""
        sink = self.scores.sink
        tensors = [term.tensor for term in self.scores.terms if term.kind != ROW]
        every = (self.query, self.key, self.value, *tensors, sink.column if sink else None)
        return [node for node in every if node is not None]

    @property
    def scores(self) -> Scores:
        """The scores as the last product takes them."""
        return self.way.scores

    @property
    def first(self) -> Product:
        """The product of queries and keys."""
        return self.way.scores.product

    @property
    def last(self) -> Product:
        """The product of weights and values."""
        return self.way.last

    @property
    def width(self) -> int:
        """The width of queries and keys."""
        return math.prod(self.first.sizes[label] for label in self.first.summed)

    def label_dims(self, labels: Labels) -> Dims:
        """Return the dimensions of an operand of the first product; a width has an axis of its own."""
        sizes, out = self.first.sizes, self.first.out
        return tuple(
            Dim(sizes[label], axis=f"{WIDTH}{label}")
            if label in self.first.summed
            else Dim(sizes[label], math.prod(sizes[each] for each in out[out.index(label) + 1 :]))
            for label in labels
        )

    @property
    def value_dims(self) -> Dims:
        """The dimensions of the values."""
        others = {self.value_label: Dim(0, axis=VALUES), self.summed_label: self.columns}
        dims = []
        for label, size in zip(self.of_value, shape(self.value), strict=True):
            dim = others.get(label, self.weights.get(label, Dim(0)))
            if size not in (1, dim.size) and dim.axis != VALUES:
                raise Odd("values of more items or heads than weights", self.last.node)
            dims.append(dim._replace(size=size) if dim.axis == VALUES else dim)
        return tuple(dims)

    @property
    def values(self) -> Dim:
        """The width of the values."""
        return next(dim for dim in self.value_dims if dim.axis == VALUES)

    @property
    def output_dims(self) -> Dims:
        """The dimensions of the output as the last product returns it."""
        by_label = dict(zip(self.of_value, self.value_dims, strict=True))
        return tuple(self.weights.get(label) or by_label[label] for label in self.last.out)

    def as_call(self, graph: Graph, memory: Memory) -> Call:
        """Return it as a call of attention, whose tensors are made where nodes are inserted; raises `Odd`."""
        self._check_memory(memory)
        making = _Making(self, graph)
        for term in self.scores.terms:
            making.add(term)
        making.set_queries_without_keys(memory)
        making.add_sink()
        lead, of_keys = ([dim.size for dim in dims] for dims in (self.lead, making.lead_of_keys))
        call = Call(
            making.headed(making.query, lead),
            making.headed(making.key, of_keys),
            making.headed(making.value, of_keys),
            making.scale,
            making.headed_mask(lead),
            has_groups=of_keys != lead,
            dropout=self.scores.dropout,
            terms=tuple(making.terms),
        )
        return with_kind(call, memory)

    def _check_memory(self, memory: Memory) -> None:
        """Raise `Odd` if an operand isn't what it was any more where the last product stands."""
        tensors = [(each, self.begin) for each in (self.query, self.key)]
        tensors += [(term.tensor, term.at) for term in self.scores.terms if term.tensor is not None]
        for tensor, at in tensors:
            if memory.change(tensor, memory.order[at], self.output):
                raise Odd("an operand that is changed in place later", at)

    def before_groups(self) -> tuple[tuple[Node, Dims], tuple[Node, Dims], Dims]:
        """Return keys and values with their dimensions, and those of items and heads, before heads were repeated."""
        key, value = (self.key, self.label_dims(self.of_key)), (self.value, self.value_dims)
        if len(self.lead) == len("BH"):
            *items, heads = self.lead
            own = before_repeat(*key, heads), before_repeat(*value, heads)
            if own[0] and own[1] and own[0].heads == own[1].heads:
                return (own[0].node, own[0].dims), (own[1].node, own[1].dims), (*items, own[0].heads)
        return key, value, self.lead

    def returned(self, graph: Graph, output: Node) -> Node:
        """Return the output of attention as the last product returns it."""
        rows, values = self.rows.size, shape(output)[-1]
        node = reshaped(graph, output, [*(dim.size for dim in self.lead), rows, values])
        node = rearranged(graph, node, [*self.lead, self.rows, Dim(values, axis=VALUES)], self.output_dims)
        node = reshaped(graph, node, shape(self.output))
        return cast(graph, node, dtype(self.output))


def attention(way: Way) -> Attention:
    """Return scores and a last product as attention; raises `Odd` if the softmax or a sum is over other dimensions."""
    scores, first, last = way.scores, way.scores.product, way.last
    if last.added is not None or last.scale != 1:
        raise Odd(f"{name(last.node)} on the weights", last.node)
    key_label, is_right = _keys(scores)
    of_query, of_key = (first.of_left, first.of_right) if is_right else (first.of_right, first.of_left)
    own = [label for label in first.out if label in of_query and label not in of_key]
    if not own:
        raise Odd("each query has keys of its own", first.node)
    of_weights, of_value = (last.of_left, last.of_right) if last.left is way.weights else (last.of_right, last.of_left)
    weights = dict(zip(of_weights, scores.dims, strict=True))
    of_values_alone = [label for label in of_value if label not in of_weights]
    if len(last.summed) != 1 or len(of_values_alone) != 1:
        raise Odd("a last product over several dimensions, or values of several widths", last.node)
    of_scores = dict(zip(first.out, scores.layouts[0], strict=True))
    rows, columns = of_scores[own[-1]], of_scores[key_label]
    _check_sum(weights[last.summed[0]], columns, scores)
    if rows.size > 1 and any(weights.get(label) == rows for label in of_value):
        raise Odd("each query has values of its own", last.node)
    query, key = (first.left, first.right) if is_right else (first.right, first.left)
    value = last.right if last.left is way.weights else last.left
    core = Attention(
        way, query, key, value, of_query, of_key, of_value, own[-1], key_label, of_values_alone[0], last.summed[0],
        rows, columns, (), weights,
    )  # fmt: skip
    return replace(core, lead=_lead(core))


def _keys(scores: Scores) -> tuple[str, bool]:
    """Return the label of the keys, over which the softmax is, and whether they are the right operand's."""
    first, more = scores.product, scores.sink.size if scores.sink else 0
    for label, dim in zip(first.out, scores.layouts[0], strict=True):
        is_left, is_right = label in first.of_left, label in first.of_right
        is_that = dim.size + more == scores.keys.size and (dim.stride == scores.keys.stride or scores.keys.size == 1)
        if is_that and is_left != is_right:
            return label, is_right
    raise Odd("a softmax over another dimension than that of keys", scores.softmax)


def _check_sum(summed: Dim, columns: Dim, scores: Scores) -> None:
    """Raise `Odd` unless the last product is a sum over the keys, without columns that aren't."""
    if summed.stride != columns.stride and columns.size > 1:
        raise Odd("a last product over another dimension than that of keys")
    if summed.size != columns.size or (scores.sink and not scores.sink.is_left_out):
        raise Odd("columns beside the scores that take part in the last product")


def _lead(core: Attention) -> Dims:
    """Return the dimensions of items and heads: those of a place on the way that has two, else the most.

    If they are one at every place, they are those of the queries before they became one; heads of a single item then
    have a dimension of one item before them.
    """
    own = (core.rows, core.columns, core.columns._replace(size=core.scores.keys.size))

    def of(dims: Dims) -> Dims:
        others = (dim for dim in dims if dim not in own and not dim.axis)
        return tuple(dim for dim in others if not dim.is_inside(core.rows) and not dim.is_inside(core.columns))

    def larger(dims: Dims) -> Dims:
        return tuple(sorted((dim for dim in of(dims) if dim.size > 1), key=lambda dim: -dim.stride))

    places = [*core.scores.layouts]
    most = max(map(larger, places), key=lambda dims: (math.prod(dim.size for dim in dims), len(dims)))
    if len(most) == 1:
        places += before_flattening(core.query, core.label_dims(core.of_query))
    sizes = math.prod(dim.size for dim in most)
    two = (dims for dims in map(larger, places) if len(dims) == 2 and math.prod(dim.size for dim in dims) == sizes)
    of_one_item = (dims for dims in map(of, places) if len(dims) == 2 and dims[0].size == 1 and dims[1:] == most)
    return next(two, next(of_one_item, most))


class _Making:
    """The tensors of a call while they are made; they have the core's dimensions of items and heads."""

    def __init__(self, core: Attention, graph: Graph) -> None:
        self.core = core
        self.graph = graph
        self.scale = 1.0
        key, value, self.lead_of_keys = core.before_groups()
        self.query = self._operand(core.query, core.label_dims(core.of_query), core.lead, core.rows)
        self.key = self._operand(*key, self.lead_of_keys, core.columns)
        self.value = rearranged(graph, *value, [*self.lead_of_keys, core.columns, core.values])
        self.dtype = dtype(self.value)
        self.mask: Node | None = None
        self.hidden: Node | None = None
        """Where keys are hidden by a finite number, as a boolean tensor."""
        self.terms: list[tuple[Term, Node]] = []

    def _operand(self, node: Node, dims: Dims, lead: Dims, rows: Dim) -> Node:
        widths = self.core.label_dims(self.core.first.summed)
        node = rearranged(self.graph, node, dims, [*lead, rows, *widths])
        return reshaped(self.graph, node, [*shape(node)[: -len(widths)], self.core.width])

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Return a new call of an operator."""
        return called(self.graph, target, *args, **kwargs)

    def add(self, term: Term) -> None:
        """Let a term have its effect on the scale, the queries or the mask."""
        steps = {ADD: self._add, HIDE: self._hide, TIMES: self._times, FACTOR: self._factor, ROW: self._check_row}
        steps[term.kind](term)

    def _times(self, term: Term) -> None:
        self.scale *= term.value
        if self.mask is not None:
            if term.value < 0:
                raise Odd("scores whose sign is changed after a mask", term.at)
            self.mask = self.call(ATEN.mul.Tensor, self.mask, term.value)

    def _add(self, term: Term) -> None:
        tensor = self._placed(term)
        if shape(tensor)[-1] == 1:
            return  # the same for all keys of a query
        self.terms.append((term, tensor))
        if term.weight != 1:
            tensor = self.call(ATEN.mul.Tensor, tensor, term.weight)
        self.mask = tensor if self.mask is None else self.call(ATEN.add.Tensor, self.mask, tensor)

    def _hide(self, term: Term) -> None:
        tensor = self._placed(term)
        self.terms.append((term, tensor))
        tensor = cast(self.graph, tensor, torch.bool)
        if term.shows:
            tensor = self.call(ATEN.logical_not.default, tensor)
        value = term.value
        if math.isfinite(value):
            self.hidden = tensor if self.hidden is None else self.call(ATEN.logical_or.default, self.hidden, tensor)
            value = max(min(value, HIDDEN), torch.finfo(self.dtype).min)
        mask = self.mask
        if mask is None:
            mask = self.call(ATEN.zeros_like.default, tensor, dtype=self.dtype)
        self.mask = self.call(ATEN.masked_fill.Scalar, mask, tensor, value)

    def _factor(self, term: Term) -> None:
        tensor = self._placed(term)
        if shape(tensor)[-1] != 1:
            raise Odd(f"{name(term.at)}: a factor that differs from key to key", term.at)
        operator = ATEN.div.Tensor if term.divides else ATEN.mul.Tensor
        self.query = self.call(operator, self.query, tensor)
        self.mask = None if self.mask is None else self.call(operator, self.mask, tensor)

    def _check_row(self, term: Term) -> None:
        columns = self.core.columns
        for dim, size in zip(term.dims, term.sizes, strict=True):
            if size > 1 and (dim.is_inside(columns) or columns.is_inside(dim)):
                raise Odd(f"{name(term.at)}: what is subtracted differs from key to key", term.at)

    def _placed(self, term: Term) -> Node:
        """Return a term's tensor with the dimensions of the core, 1 where it is broadcast."""
        assert term.tensor is not None
        tensor = reshaped(self.graph, term.tensor, term.sizes)
        columns = self.core.columns
        dims = [columns if d.stride == columns.stride and d.size > columns.size else d for d in term.dims]
        return rearranged(self.graph, tensor, dims, [*self.core.lead, self.core.rows, columns])

    def set_queries_without_keys(self, memory: Memory) -> None:
        """Let the scores of a query whose keys are all hidden be zero, so that its weights are equal.

        No gradient comes by them then, as in the module; and a kernel has no sum of exponentials of huge numbers.
        """
        if self.hidden is None or self.core.scores.sink is not None:
            return
        known = constant(self.hidden, memory)
        if known is not None and not bool(known.all(-1).any()):
            return
        hidden = self.call(ATEN.all.dim, self.hidden, -1, True)
        self.query, self.mask = (
            self.call(ATEN.masked_fill.Scalar, each, hidden, 0.0) for each in (self.query, self.mask)
        )

    def add_sink(self) -> None:
        """Add columns that are no product as further keys of zeros with values of zeros, and a mask."""
        sink = self.core.scores.sink
        if sink is None:
            return
        beside = Dim(sink.size, axis=COLUMNS)
        dims = [beside if place == sink.place else dim for place, dim in enumerate(sink.dims)]
        column = rearranged(self.graph, sink.column, dims, [*self.core.lead, self.core.rows, beside])
        self.key, self.value = (
            self.call(ATEN.constant_pad_nd.default, each, [0, 0, 0, sink.size], 0.0) for each in (self.key, self.value)
        )
        mask = self.mask
        if mask is None:
            mask = self.call(ATEN.new_zeros.default, column, [*shape(column)[:-1], self.core.columns.size])
        both = torch.broadcast_shapes(shape(mask)[:-1], shape(column)[:-1])
        mask, column = (expanded(self.graph, each, [*both, shape(each)[-1]]) for each in (mask, column))
        self.mask = self.call(ATEN.cat.default, [mask, cast(self.graph, column, dtype(mask))], -1)

    def headed(self, node: Node, lead: Sequence[int]) -> Node:
        """Return a tensor with these leading sizes as `[B, H, N, D]`, of the type of the values."""
        *_, rows, width = shape(node)
        node = cast(self.graph, expanded(self.graph, node, [*lead, rows, width]), self.dtype)
        *items, heads = lead if len(lead) > 1 else [*lead, 1]
        return reshaped(self.graph, node, [math.prod(items), heads, rows, width])

    def headed_mask(self, lead: Sequence[int]) -> Node | None:
        """Return the mask as `[B, H, N, M]`, 1 where it is broadcast."""
        if self.mask is None:
            return None
        *items, heads = shape(self.mask)[:-2] or [1]
        is_of_items = any(size != 1 for size in items)
        return self.headed(self.mask, [*(lead[:-1] if is_of_items else items), heads])
