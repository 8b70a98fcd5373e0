"""Operators that compute a core alone, and what they are asked for."""

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from impls.graph.calls import Call, with_kind
from impls.graph.dimensions import ATEN, called, reshaped
from impls.graph.flex import PLACES, factor_and_mask
from impls.graph.memory import Memory
from impls.graph.scores import ADD, Term
from impls.graph.tracing import dtype, is_tensor, name, shape

SDPA, FLEX = "scaled_dot_product_attention", "flex_attention"

FUSED = re.compile(r"_scaled_dot_product_(?!.*backward)\w*attention\w*")
"""The names of the operators that torch's function calls."""


@dataclass(frozen=True, eq=False)
class Fused:
    """A core that one operator computes; `output` is the node of its output, which may be one of several results."""

    begin: Node
    output: Node
    asked: Mapping[str, Any]
    obstacle: str = ""

    @property
    def tensors(self) -> tuple[Node, ...]:
        """Queries, keys and values."""
        return tuple(self.asked[key] for key in ("query", "key", "value"))

    @property
    def chain(self) -> list[Node]:
        """The nodes of the graph that hold weights: none."""
        return []

    @property
    def steps(self) -> list[Node]:
        """The operator."""
        return [self.begin]

    @property
    def operands(self) -> list[Node]:
        """The nodes that it takes."""
        return self.begin.all_input_nodes

    def as_call(self, graph: Graph, memory: Memory) -> Call:
        """Return it as a call of attention, whose tensors are made where nodes are inserted; raises `Odd`."""
        if name(self.begin) == FLEX:
            return self._flex(graph, memory)
        query, key, value = (_headed(graph, each) for each in self.tensors)
        sizes, scale, asked = shape(self.tensors[0]), self.asked.get("scale"), self.asked
        mask: Node | None = asked.get("attn_mask", asked.get("attn_bias"))
        terms = () if mask is None else ((Term(ADD, self.begin, 0, tensor=mask, shows=True), mask),)
        if mask is not None and len(shape(mask)) > len("NM") and len(sizes) != len("BHND"):
            if len(sizes) > len("BHND"):
                mask = called(graph, ATEN.expand.default, mask, [*sizes[:-1], shape(self.tensors[1])[-2]])
            mask = _headed(graph, mask)
        return Call(
            query,
            key,
            value,
            sizes[-1] ** -0.5 if scale is None else float(scale),
            mask,
            bool(asked.get("is_causal")),
            bool(asked.get("enable_gqa")),
            float(asked.get("dropout_p") or 0),
            terms,
        )

    def _flex(self, graph: Graph, memory: Memory) -> Call:
        query, key, value = self.tensors
        factor, mask = factor_and_mask(self.begin, graph, memory)
        if mask is not None and dtype(mask) != dtype(value):
            mask = called(graph, ATEN.to.dtype, mask, dtype(value))
        has_groups = shape(query)[1] != shape(key)[1]
        call = Call(query, key, value, factor * float(self.asked["scale"]), mask, has_groups=has_groups)
        return with_kind(call, memory)

    def returned(self, graph: Graph, output: Node) -> Node:
        """Return the output of attention as the operator returns it."""
        return reshaped(graph, output, shape(self.output))


def fused(node: Node) -> Fused | None:
    """Return the core that a node computes alone, None if it computes none."""
    kind = name(node) if node.op == "call_function" else ""
    if kind not in (FLEX, SDPA) and not FUSED.fullmatch(kind):
        return None
    names: Sequence[str] = PLACES  # the programs of flex_attention are read when it becomes a call
    if isinstance(node.target, torch._ops.OpOverload):
        names = [argument.name for argument in node.target._schema.arguments]
    asked = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    output, others = (node, False) if is_tensor(node) else _first_result(node)
    return None if output is None else Fused(node, output, asked, f"{kind} with several results" if others else "")


def _first_result(node: Node) -> tuple[Node | None, bool]:
    """Return the node of the first of several results, and whether others are used."""
    taken = {user.args[1]: user for user in node.users if user.target is operator.getitem}
    return taken.get(0), any(place != 0 and user.users for place, user in taken.items())


def _headed(graph: Graph, node: Node) -> Node:
    """Return a tensor `[…, B, H, N, D]`, or one of fewer dimensions, as `[B, H, N, D]`."""
    sizes = shape(node)
    if len(sizes) < len("BHND"):
        return reshaped(graph, node, [*sizes[:-2], *[1] * (len("BHND") - len(sizes)), *sizes[-2:]])
    *_, heads, rows, width = sizes
    return reshaped(graph, node, [node.meta["val"].numel() // max(heads * rows * width, 1), heads, rows, width])
