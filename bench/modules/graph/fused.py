"""Operators that compute a core alone, as calls of attention.

The programs of flex_attention for scores and masks are read if they are a factor and a mask.
"""

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from bench.modules.graph.calls import Call, with_kind
from bench.modules.graph.constants import constant, held
from bench.modules.graph.dimensions import ATEN, Odd, called, cast, expanded, reshaped
from bench.modules.graph.masks import LOWEST
from bench.modules.graph.memory import Memory
from bench.modules.graph.scores import ADD, Term
from bench.modules.graph.tracing import dtype, is_tensor, name, shape
from impls.sameness import SAME_SCORES

SDPA, FLEX = "scaled_dot_product_attention", "flex_attention"

FUSED = re.compile(r"_scaled_dot_product_(?!.*backward)\w*attention\w*")
"""The names of the operators that torch's function calls."""


PLACES = ("query", "key", "value", "score_mod", "block_mask", "scale", "options", "of_scores", "of_masks")
"""The arguments of the operator flex_attention, by their places."""

TRIED = (0.0, 1.0, -3.0)
"""The scores that tell a factor and a mask from other programs."""


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
            whole = [*sizes[:-1], shape(self.tensors[1])[-2]] if len(sizes) > len("BHND") else shape(mask)
            mask = _headed(graph, expanded(graph, mask, whole))
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
        factor, mask = _factor_and_mask(self.begin, graph, memory)
        mask = None if mask is None else cast(graph, mask, dtype(value))
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


def _factor_and_mask(node: Node, graph: Graph, memory: Memory) -> tuple[float, Node | None]:
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
    mask = expanded(graph, results[0], torch.broadcast_shapes(shape(results[0]), shape(shown)))
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
    is_line = torch.allclose((other - zero)[shown], TRIED[-1] * factor, rtol=SAME_SCORES, atol=SAME_SCORES)
    if not is_line or not torch.allclose(factor, factor[:1], rtol=SAME_SCORES, atol=SAME_SCORES):
        raise Odd("flex_attention: a program that does more to scores than a factor and a mask")
    if not bool((one[~shown] <= LOWEST).all()):
        raise Odd("flex_attention: a program that hides keys by their scores")
    return float(factor[0]), bool((zero != 0).any())
