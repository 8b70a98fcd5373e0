"""A way through a softmax as attention: which tensors are queries, keys and values, and by what dimensions."""

import math
from dataclasses import dataclass, replace

from torch.fx import Node

from impls.graph.dimensions import Dim, Dims, Odd
from impls.graph.groups import before_flattening
from impls.graph.products import Labels, Product
from impls.graph.scores import ROW, Scores, Way
from impls.graph.tracing import name, shape

WIDTH, VALUES, COLUMNS = "width", "values", "columns"
"""The axes that scores don't have: the width of queries and keys, that of values, and columns beside the scores."""


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
