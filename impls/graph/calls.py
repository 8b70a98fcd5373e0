"""A core as a call of attention: its queries, keys and values as `[B, H, N, D]`, a scale and a mask."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Graph, Node

from impls.graph.constants import constant
from impls.graph.dimensions import ATEN, Dim, Dims, Odd, called, rearranged, reshaped
from impls.graph.expressing import COLUMNS, VALUES, Attention
from impls.graph.groups import before_repeat
from impls.graph.memory import Memory
from impls.graph.scores import ADD, FACTOR, HIDE, LOWEST, ROW, TIMES, Term
from impls.graph.tracing import dtype, is_tensor, name, shape

HIDDEN = -1e30
"""The score of a hidden key, beside which a usual one is lost; it is finite, as the module's own."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call of attention: its tensors are nodes of the graph, and `terms` those that the mask is made of."""

    query: Node
    key: Node
    value: Node
    scale: float
    mask: Node | None = None
    is_causal: bool = False
    has_groups: bool = False
    dropout: float = 0.0
    terms: tuple[tuple[Term, Node], ...] = ()

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


def expressed(core: Attention, graph: Graph, memory: Memory) -> Call:
    """Return a core as a call of attention, whose tensors are made where nodes are inserted; raises `Odd`."""
    _check_memory(core, memory)
    making = _Making(core, graph)
    for term in core.scores.terms:
        making.add(term)
    making.set_queries_without_keys(memory)
    making.add_sink()
    query = making.headed(making.query, core.lead)
    key, value = (making.headed(each, making.lead_of_keys) for each in (making.key, making.value))
    call = Call(
        query,
        key,
        value,
        making.scale,
        making.headed_mask(),
        has_groups=making.lead_of_keys != core.lead,
        dropout=core.scores.dropout,
        terms=tuple(making.terms),
    )
    return with_kind(call, memory)


def _before_groups(core: Attention) -> tuple[tuple[Node, Dims], tuple[Node, Dims], Dims]:
    """Return keys and values with their dimensions, and those of items and heads, before heads were repeated."""
    key, value = (core.key, core.label_dims(core.of_key)), (core.value, core.value_dims)
    if len(core.lead) == len("BH"):
        *items, heads = core.lead
        own = before_repeat(*key, heads), before_repeat(*value, heads)
        if own[0] and own[1] and own[0].heads == own[1].heads:
            return (own[0].node, own[0].dims), (own[1].node, own[1].dims), (*items, own[0].heads)
    return key, value, core.lead


def _check_memory(core: Attention, memory: Memory) -> None:
    """Raise `Odd` if an operand isn't what it was any more where the last product stands."""
    tensors = [(each, core.first.node) for each in (core.query, core.key)]
    tensors += [(term.tensor, term.at) for term in core.scores.terms if term.tensor is not None]
    for tensor, at in tensors:
        if memory.change(tensor, memory.order[at], core.last.node):
            raise Odd("an operand that is changed in place later", at)


def with_kind(call: Call, memory: Memory) -> Call:
    """Return a call without a mask that is constant and hides nothing, or hides later keys alone."""
    mask = None if call.mask is None else constant(call.mask, memory)
    if mask is None:
        return call
    hidden = mask <= LOWEST
    if bool((hidden | (mask == 0)).all()):
        queries, keys = shape(call.query)[-2], shape(call.key)[-2]
        later = torch.ones(queries, keys, dtype=torch.bool, device=mask.device).triu(1)
        if not bool(hidden.any()):
            return replace(call, mask=None)
        if mask.shape[-2:] == later.shape and bool((hidden == later).all()):
            return replace(call, mask=None, is_causal=True)
    return call


class _Making:
    """The tensors of a call while they are made; they have the core's dimensions of items and heads."""

    def __init__(self, core: Attention, graph: Graph) -> None:
        self.core = core
        self.graph = graph
        self.scale = 1.0
        key, value, self.lead_of_keys = _before_groups(core)
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
        {ADD: self._add, HIDE: self._hide, TIMES: self._times, FACTOR: self._factor, ROW: self._check_row}[term.kind](
            term
        )

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
        if dtype(tensor) != torch.bool:
            tensor = self.call(ATEN.to.dtype, tensor, torch.bool)
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
        mask, column = (
            each if shape(each)[:-1] == both else self.call(ATEN.expand.default, each, [*both, shape(each)[-1]])
            for each in (mask, column)
        )
        if dtype(column) != dtype(mask):
            column = self.call(ATEN.to.dtype, column, dtype(mask))
        self.mask = self.call(ATEN.cat.default, [mask, column], -1)

    def headed(self, node: Node, dims: Dims) -> Node:
        """Return a tensor as `[B, H, N, D]`, of the type of the values."""
        lead = [dim.size for dim in dims]
        *_, rows, width = shape(node)
        if [*shape(node)[:-2]] != lead:
            node = self.call(ATEN.expand.default, node, [*lead, rows, width])
        node = node if dtype(node) == self.dtype else self.call(ATEN.to.dtype, node, self.dtype)
        return reshaped(self.graph, node, [*_two(lead), rows, width])

    def headed_mask(self) -> Node | None:
        """Return the mask as `[B, H, N, M]`, 1 where it is broadcast."""
        if self.mask is None:
            return None
        mask, lead = self.mask, [dim.size for dim in self.core.lead]
        own = [*shape(mask)[:-2]]
        if any(size != 1 for size in own[:-1]) and own[:-1] != lead[:-1]:
            own = [*lead[:-1], own[-1]]
            mask = self.call(ATEN.expand.default, mask, [*own, *shape(mask)[-2:]])
        mask = reshaped(self.graph, mask, [*_two(own), *shape(mask)[-2:]])
        return mask if dtype(mask) == self.dtype else self.call(ATEN.to.dtype, mask, self.dtype)


def _two(lead: Sequence[int]) -> list[int]:
    """Return the sizes of items and of heads for all leading sizes."""
    if len(lead) < 2:
        return [*lead, *[1] * (2 - len(lead))]
    return [math.prod(lead[:-1]), lead[-1]]


def returned(core: Attention, graph: Graph, output: Node) -> Node:
    """Return the output of attention as the last product returns it."""
    rows, values = core.rows.size, shape(output)[-1]
    node = reshaped(graph, output, [*(dim.size for dim in core.lead), rows, values])
    node = rearranged(graph, node, [*core.lead, core.rows, Dim(values, axis=VALUES)], core.output_dims)
    node = reshaped(graph, node, shape(core.last.node))
    kind = dtype(core.last.node)
    return node if dtype(node) == kind or not is_tensor(node) else called(graph, ATEN.to.dtype, node, kind)
