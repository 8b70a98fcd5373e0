"""What a graph does to memory: which nodes share it, what changes it, and in what order."""

from collections import defaultdict
from collections.abc import Collection, Iterator

import torch
from torch.fx import Graph, Node

from bench.modules.graph.tracing import name, reached

VIEWS = frozenset({
    "view", "_unsafe_view", "_reshape_alias", "reshape", "permute", "transpose", "t", "numpy_T", "mT", "T",
    "adjoint", "swapaxes", "swapdims", "movedim", "moveaxis", "expand", "unsqueeze", "squeeze", "alias",
    "flatten", "unflatten", "slice", "select", "narrow", "split", "split_with_sizes", "chunk", "unbind", "detach",
})  # fmt: skip
"""Operators that return other dimensions of a tensor, usually without a copy."""

COPIES = frozenset({
    "clone", "_to_copy", "to", "contiguous", "nan_to_num", "type_as", "float", "lift_fresh", "lift_fresh_copy", "alias",
    "detach", "half", "double", "bfloat16",
})  # fmt: skip
"""Operators that return the same numbers, maybe of another type."""

MAY_SHARE = VIEWS | COPIES | {"dropout", "feature_dropout"}
"""Operators whose result may have the memory of what they take."""


DETACH = torch.ops.aten.detach_.default
"""By its schema it changes its tensor, but no number of it; `torch.tensor` calls it."""


def origin(node: Node, through: Collection[str] = COPIES) -> Node:
    """Return the node from which operators of these names make a node."""
    while node.op == "call_function" and name(node) in through:
        node = node.all_input_nodes[0]
    return node


def is_mutable(node: Node) -> bool:
    """Return whether a node changes memory in place."""
    if not isinstance(node.target, torch._ops.OpOverload) or node.target is DETACH:
        return False
    return node.target._schema.is_mutable


class Memory:
    """The order of a graph's nodes, and the changes in place of each memory."""

    def __init__(self, graph: Graph) -> None:
        self.order = {node: place for place, node in enumerate(graph.nodes)}
        self._roots: dict[Node, Node] = {}
        self._changes: dict[Node, list[Node]] = defaultdict(list)
        self._sharing: dict[Node, list[Node]] = defaultdict(list)
        for node in self.order:
            root = self._roots[node] = self._root(node)
            self._sharing[root].append(node)
            if is_mutable(node):
                self._changes[root].append(node)

    def _root(self, node: Node) -> Node:
        """Return the first node that has the memory of a node; those before it are known."""
        is_sharing = node.op == "call_function" and (is_mutable(node) or _kind(node) in MAY_SHARE)
        before = next(iter(node.args), None) if is_sharing else None
        return self._roots[before] if isinstance(before, Node) else node

    def root(self, node: Node) -> Node:
        """Return the first node that may have the memory of a node."""
        return self._roots[node]

    def sharing(self, node: Node) -> list[Node]:
        """Return the nodes that may have the memory of a node."""
        return self._sharing[self._roots[node]]

    def change(self, node: Node, since: int, user: Node) -> Node | None:
        """Return what changes a node's memory after the node and a place, and before a user reads it."""
        start, end = max(since, self.order[node]), self.order[user]
        # what the user itself changes, it reads before
        return next((each for each in self._changes[self.root(node)] if start < self.order[each] < end), None)

    def is_changed(self, node: Node) -> bool:
        """Return whether a node's memory is changed at all."""
        return bool(self._changes.get(self._roots.get(node, node)))

    def readers(self, node: Node) -> Iterator[Node]:
        """Yield what reads the memory of a node after it."""
        for each in self.sharing(node):
            yield from (user for user in each.users if self.order.get(user, -1) > self.order[node])

    def depends(self, node: Node, on: Node) -> bool:
        """Return whether a node is computed from another one."""
        order = self.order
        return on in reached([node], lambda of: [each for each in of.all_input_nodes if order[each] >= order[on]])


def _kind(node: Node) -> str:
    """Return an operator's name, that of the operator whose results it takes one of."""
    before = next(iter(node.args), None)
    return name(before) if name(node) == "getitem" and isinstance(before, Node) else name(node)
