"""The values of nodes that are the same in every call: they depend on no input and no parameter."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Node
from torch.fx.node import map_arg

from bench.modules.graph.memory import DETACH, Memory, is_mutable
from bench.modules.graph.tracing import name

NONE: Mapping[Node, Tensor] = MappingProxyType({})

MOST_NODES = 200
"""The operators that are computed at most to know a value; a mask takes fewer."""


def number(value: Any, memory: Memory) -> float | None:
    """Return a number, or the only one that the constants of a node hold; None if it isn't known."""
    if isinstance(value, int | float):
        return float(value)
    found = constant(value, memory)
    first = None if found is None or not found.numel() else found.flatten()[0]
    return None if found is None or first is None or not bool(found.eq(first).all()) else float(first)


def constant(
    node: Any, memory: Memory, *, with_parameters: bool = False, inputs: Mapping[Node, Tensor] = NONE
) -> Tensor | None:
    """Return the tensor of a node that depends on constants and buffers alone; None if it depends on other values.

    Parameters are constants too if that is asked for, and so are given values of inputs.
    """
    if not isinstance(node, Node):
        return None
    order = _before(node, memory, inputs, with_parameters=with_parameters)
    if order is None:
        return None
    values: dict[Node, Any] = {**inputs}
    with torch.no_grad():
        for each in order:
            values[each] = _computed(each, values)
    return values[node] if isinstance(values[node], Tensor) else None


def held(node: Node) -> Any:
    """Return what a node `get_attr` holds."""
    value: Any = node.graph.owning_module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value


def _before(node: Node, memory: Memory, inputs: Mapping[Node, Tensor], *, with_parameters: bool) -> list[Node] | None:
    """Return the nodes that a node is computed from, in their order, and itself; None if one is no constant."""
    stack, seen = [node], set[Node]()
    while stack:
        each = stack.pop()
        if each in seen or each in inputs:
            continue
        seen.add(each)
        if len(seen) > MOST_NODES or memory.is_changed(each):
            return None
        if each.op == "get_attr":
            if not with_parameters and isinstance(held(each), nn.Parameter):
                return None
        elif not _is_pure(each):
            return None
        stack += each.all_input_nodes
    return [each for each in node.graph.nodes if each in seen]


def _is_pure(node: Node) -> bool:
    """Return whether a node is a call that returns the same for the same values."""
    if node.op != "call_function":
        return False
    if not isinstance(node.target, torch._ops.OpOverload):
        return name(node) == "getitem"
    return torch.Tag.nondeterministic_seeded not in node.target.tags and not is_mutable(node)


def _computed(node: Node, values: Mapping[Node, Any]) -> Any:
    if node.op == "get_attr":
        return held(node)
    args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
    assert callable(node.target)
    if node.target is DETACH:  # what the graph holds must stay as it is
        return torch.ops.aten.detach(*args)
    return node.target(*args, **kwargs)
