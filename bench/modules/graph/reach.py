"""What is reached in a graph from its nodes: what is needed, what comes soon, what something is computed from."""

import math
from collections.abc import Mapping, Sequence

from torch import nn
from torch.fx import Node

from bench.modules.graph.constants import held
from bench.modules.graph.memory import COPIES, VIEWS, Memory, is_mutable, origin
from bench.modules.graph.products import product
from bench.modules.graph.scores import SOFTMAX
from bench.modules.graph.tracing import is_tensor, name, reached, shape, where

REPEATS = VIEWS | COPIES | {"repeat", "repeat_interleave"}
"""Operators that return the numbers of a tensor, some maybe several times."""

REACHED_NODES = 60
"""The nodes after an operator among which a softmax is looked for."""


def is_learned(node: Node) -> bool:
    """Return whether a node is computed from a parameter with a gradient by few operators."""
    every = (held(each) for each in reached([node], _inputs, REACHED_NODES) if each.op == "get_attr")
    return any(isinstance(each, nn.Parameter) and each.requires_grad for each in every)


def _inputs(node: Node) -> list[Node]:
    return node.all_input_nodes


def live(operands: Mapping[Node, Sequence[Node]], memory: Memory) -> set[Node]:
    """Return the nodes that are needed if those among `operands` are computed from these alone."""

    def needed(node: Node) -> list[Node]:
        if node in operands:
            return [*operands[node]]
        return [*node.all_input_nodes, *filter(is_mutable, memory.sharing(node))]

    return {*reached([node for node in memory.order if node.op == "output"], needed)}


def next_softmaxes(node: Node) -> list[Node]:
    """Return the softmaxes that come soon after a node, before another product."""

    def after(each: Node) -> list[Node]:
        is_end = name(each) in SOFTMAX or (each is not node and product(each) is not None)
        return [] if is_end else [*each.users]

    return [each for each in reached([node], after, REACHED_NODES) if name(each) in SOFTMAX]


def what_it_is_over(softmax: Node) -> str:
    """Say what a softmax is over if no product's result led to it."""
    for node in _behind(softmax):
        if _is_layer(node):
            return "over a layer's output: no attention, or a gate"
        if product(node) is not None:
            return f"over a product at {where(node)}, whose result goes no way that is known"
    return "over no product"


def sums(softmax: Node) -> str:
    """Say that a softmax is over sums for pairs of queries and keys, with or without a layer; empty if it isn't."""
    near = _behind(softmax)
    scores = [node for node in near if (_is_layer(node) or product(node)) and _count(node) == _count(softmax)]
    if not all(any(origin(each, REPEATS).op == "get_attr" for each in node.all_input_nodes) for node in scores):
        return ""  # a product of queries and keys
    pairs = [each for each in near if _count(each) == _count(softmax)]
    pairs += [each for node in scores for each in _behind(node)]
    at = next((where(each) for each in pairs if _is_of_pairs(each)), "")
    return at and f"over sums for queries and keys, no products of them (additive attention), at {at}"


def _is_of_pairs(node: Node) -> bool:
    """Return whether an operator puts tensors together that are repeated for it, such as those of queries and keys."""
    parts = [each for each in node.all_input_nodes if is_tensor(each)]
    is_cat = name(node) == "cat"
    is_repeated = all(_count(origin(each, REPEATS)) < _count(each if is_cat else node) for each in parts)
    return (is_cat or name(node) in ("add", "sub")) and len(parts) > 1 and is_repeated


def _behind(node: Node) -> list[Node]:
    """Return what a node is computed from, up to products and layers, the nearest first."""

    def before(each: Node) -> list[Node]:
        is_end = each is not node and (_is_layer(each) or product(each) is not None)
        return [] if is_end else each.all_input_nodes

    return [each for each in reached([node], before, REACHED_NODES)[1:] if is_tensor(each)]


def _is_layer(node: Node) -> bool:
    return name(node) in ("linear", "addmm") or "conv" in name(node)


def _count(node: Node) -> int:
    return math.prod(shape(node))
