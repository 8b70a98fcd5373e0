"""flex_attention as a call of attention: its programs for scores and masks are read if they are a factor and a mask."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from impls.graph.constants import constant, held
from impls.graph.dimensions import ATEN, Odd, called
from impls.graph.memory import Memory
from impls.graph.scores import LOWEST
from impls.graph.tracing import shape

PLACES = ("query", "key", "value", "score_mod", "block_mask", "scale", "options", "of_scores", "of_masks")
"""The arguments of the operator flex_attention, by their places."""

TRIED = (0.0, 1.0, -3.0)
"""The scores that tell a factor and a mask from other programs."""

NEAR = 1e-5
"""What rounding may change a score by."""


def factor_and_mask(node: Node, graph: Graph, memory: Memory) -> tuple[float, Node | None]:
    """Return the factor of scores, and a floating-point mask that is added to them; raises `Odd` for other programs."""
    asked: dict[str, Any] = dict(zip(PLACES, node.args, strict=False))
    places = _places(graph, asked["query"], asked["key"])
    results = []
    for score in TRIED:
        scores = called(graph, ATEN.full.default, [1, 1, 1, 1], score, device=_device(asked["query"]))
        results.append(_inlined(graph, asked["score_mod"], [scores, *places, *asked["of_scores"]]))
    factor, is_added = _factor([_known(each, memory) for each in results])
    shown = _inlined(graph, asked["block_mask"][-1], [*places, *asked["of_masks"]])
    hides = not bool(_known(shown, memory).all())
    if not hides:
        return factor, results[0] if is_added else None
    size = torch.broadcast_shapes(shape(results[0]), shape(shown))
    mask = called(graph, ATEN.expand.default, results[0], [*size])
    hidden = called(graph, ATEN.logical_not.default, shown)
    return factor, called(graph, ATEN.masked_fill.Scalar, mask, hidden, float("-inf"))


def _device(node: Node) -> torch.device:
    device: torch.device = node.meta["val"].device
    return device


def _places(graph: Graph, query: Node, key: Node) -> list[Node]:
    """Return the numbers of items, heads, queries and keys, each along its own dimension."""
    items, heads, queries, _ = shape(query)
    every = []
    for place, size in enumerate((items, heads, queries, shape(key)[-2])):
        numbers = called(graph, ATEN.arange.default, size, device=_device(query))
        every.append(called(graph, ATEN.reshape.default, numbers, [size if at == place else 1 for at in range(4)]))
    return every


def _inlined(graph: Graph, program: Node, args: Sequence[Any]) -> Node:
    """Return the result of a program, whose operators are called in the graph."""
    module = held(program)
    assert isinstance(module, GraphModule)
    given, values = iter(args), dict[Node, Any]()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(given)
        elif node.op == "output":
            result = map_arg(node.args[0], values.__getitem__)
            return result[0] if isinstance(result, list | tuple) else result  # type: ignore[no-any-return]
        elif node.op == "call_function":
            own, options = map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = called(graph, node.target, *own, **options)
        else:
            break
    raise Odd("flex_attention: a program that can't be read", program)


def _known(node: Node, memory: Memory) -> Tensor:
    value = constant(node, memory, with_parameters=True)
    if value is None:
        raise Odd("flex_attention: a program that depends on the module's input")
    return value


def _factor(scores: Sequence[Tensor]) -> tuple[float, bool]:
    """Return by what a program multiplies scores, and whether it adds or hides anything; raises `Odd` for others."""
    zero, one, other = torch.broadcast_tensors(*(each.double() for each in scores))
    shown = zero > LOWEST
    if not bool(shown.any()):
        raise Odd("flex_attention: a program that hides all keys")
    factor = (one - zero)[shown]
    is_line = torch.allclose((other - zero)[shown], TRIED[-1] * factor, rtol=NEAR, atol=NEAR)
    if not is_line or not torch.allclose(factor, factor[:1], rtol=NEAR, atol=NEAR):
        raise Odd("flex_attention: a program that does more to scores than a factor and a mask")
    if not bool((one[~shown] <= LOWEST).all()):
        raise Odd("flex_attention: a program that hides keys by their scores")
    return float(factor[0]), bool((zero != 0).any())
