"""What is reached in a graph from its nodes: what is needed, what comes soon, what something is computed from."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from torch import nn
from torch.fx import Node

from impls.graph.constants import held
from impls.graph.memory import Memory, is_mutable
from impls.graph.products import product
from impls.graph.scores import SOFTMAX
from impls.graph.tracing import is_tensor, name, where

NEAR = 60
"""The nodes after an operator among which a softmax is looked for."""


def reached(nodes: Collection[Node]) -> set[Node]:
    """Return the nodes that are computed from these, and these."""
    stack, seen = [*nodes], set[Node]()
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += node.users
    return seen


def is_learned(node: Node) -> bool:
    """Return whether a node is computed from a parameter with a gradient by few operators."""
    stack, seen = [node], set[Node]()
    while stack and len(seen) < NEAR:
        each = stack.pop(0)
        if each.op == "get_attr" and isinstance(value := held(each), nn.Parameter) and value.requires_grad:
            return True
        if each not in seen:
            seen.add(each)
            stack += each.all_input_nodes
    return False


def live(operands: Mapping[Node, Sequence[Node]], memory: Memory) -> set[Node]:
    """Return the nodes that are needed if those among `operands` are computed from these alone."""
    stack = [node for node in memory.order if node.op == "output"]
    seen = set[Node]()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        stack += operands.get(node, node.all_input_nodes)
        stack += (other for other in memory.sharing(node) if is_mutable(other) and node not in operands)
    return seen


def next_softmaxes(node: Node) -> Iterator[Node]:
    """Yield the softmaxes that come soon after a node, before another product."""
    stack, seen = [node], set[Node]()
    while stack and len(seen) < NEAR:
        each = stack.pop(0)
        if each in seen or each.op != "call_function":
            continue
        seen.add(each)
        if name(each) in SOFTMAX:
            yield each
        elif each is node or product(each) is None:
            stack += each.users


def what_it_is_over(softmax: Node) -> str:
    """Say what a softmax is over if no product's result led to it."""
    stack, seen = [*softmax.all_input_nodes], set[Node]()
    while stack and len(seen) < NEAR:
        node = stack.pop(0)
        if node in seen or not is_tensor(node):
            continue
        seen.add(node)
        kind = name(node)
        if kind in ("linear", "addmm") or "conv" in kind:
            return "over a layer's output: no attention, or a gate"
        if product(node) is not None:
            return f"over a product at {where(node)}, whose result goes no way that is known"
        stack += node.all_input_nodes
    return "over no product"
