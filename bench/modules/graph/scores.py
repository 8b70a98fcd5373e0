"""The ways of a product's result, the scores, through a softmax to a second product.

The scores are followed as a tensor without data whose strides say which of them is where: what is done to the scores'
dimensions is done to it, so their order never matters.
"""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from bench.modules.graph.dimensions import NO_DIM, Dim, Dims, Odd, dims_of
from bench.modules.graph.products import Product
from bench.modules.graph.tracing import name, shape

SOFTMAX = frozenset({"softmax", "_softmax", "_safe_softmax", "special_softmax"})
ADD, HIDE, TIMES, FACTOR, ROW = "add", "hide", "times", "factor", "row"


@dataclass(frozen=True, eq=False)
class Term:
    """What an operator does to scores of dimensions `dims`, before the softmax.

    `kind` is ADD (`weight` times a tensor), HIDE (`value` where a tensor is True, or False if it `shows`), TIMES (the
    number `value`), FACTOR (a tensor, or 1 by it if it `divides`), or ROW (a statistic of each query is subtracted).
    `tensor` is argument `place` of the operator `at`.
    """

    kind: str
    at: Node
    place: int
    dims: Dims = ()
    tensor: Node | None = None
    weight: float = 1.0
    value: float = 1.0
    shows: bool = False
    divides: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the tensor in the scores' dimensions, 1 where it is broadcast."""
        own = shape(self.tensor) if self.tensor is not None else ()
        return (1,) * (len(self.dims) - len(own)) + own


@dataclass(frozen=True, eq=False)
class Sink:
    """Columns that stand beside the scores at a place of their dimensions, and whether they were left out after."""

    column: Node
    place: int
    dims: Dims
    is_left_out: bool = False

    @property
    def size(self) -> int:
        """The number of columns."""
        return shape(self.column)[self.place]


@dataclass(frozen=True, eq=False)
class Scores:
    """What is known of the result of a product at a place on its way.

    `layout` is a tensor without data whose strides are those of the product's result, `layouts` are all dimensions so
    far; `keys` is the dimension of the softmax; `since` is the place of the last change of its memory.
    """

    product: Product
    layout: Tensor
    terms: tuple[Term, ...] = ()
    layouts: tuple[Dims, ...] = ()
    exponentials: Node | None = None
    softmax: Node | None = None
    keys: Dim = NO_DIM
    weights: tuple[Node, ...] = ()
    dropout: float = 0.0
    sink: Sink | None = None
    since: int = -1

    @property
    def what(self) -> str:
        """What they are: scores, or weights after the softmax."""
        return "scores" if self.softmax is None else "weights"

    @property
    def dims(self) -> Dims:
        """The dimensions in the present order."""
        return dims_of(self.layout)

    def after(self, **changes: Any) -> "Scores":
        """Return the scores with changes, their dimensions noted."""
        new = dataclasses.replace(self, **changes)
        return new if new.dims in new.layouts else dataclasses.replace(new, layouts=(*new.layouts, new.dims))

    def with_term(self, kind: str, at: Node, place: int, tensor: Node | None = None, **more: Any) -> "Scores":
        """Return the scores after an operator, which may add dimensions of size 1."""
        if tensor is None:
            return self.after(terms=(*self.terms, Term(kind, at, place, **more)))
        full = torch.broadcast_shapes(self.layout.shape, shape(tensor))
        if math.prod(full) != self.layout.numel():
            raise Odd("a tensor that makes more scores", at)
        layout = self.layout.broadcast_to(full)
        term = Term(kind, at, place, dims_of(layout), tensor, **more)
        return self.after(layout=layout, terms=(*self.terms, term))


@dataclass(frozen=True, eq=False)
class Way:
    """Scores as the second product takes them: what they went through, that product and its operand."""

    scores: Scores
    last: Product
    weights: Node


@dataclass(frozen=True, eq=False)
class Blocked:
    """Scores that `node` changes in a way that attention can't express; `user` is what takes them.

    `is_mixed` is true if `user` is a product that sums over heads.
    """

    scores: Scores
    user: Node
    node: Node
    reason: str
    is_mixed: bool = False


def softmaxes(graph: Graph) -> Iterator[Node]:
    """Yield the softmaxes of a graph, and the sums that stand for one."""
    for node in graph.nodes:
        if node.op == "call_function" and (name(node) in SOFTMAX or name(node) == "logsumexp"):
            yield node
