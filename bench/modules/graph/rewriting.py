"""A graph whose cores are computed by an attend."""

import copy
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import torch
from torch.fx import Graph, GraphModule, Node

from bench.modules.graph.calls import Call
from bench.modules.graph.cores import Core, Found, Softmax, found, inserted
from bench.modules.graph.dimensions import ATEN, Odd, called
from bench.modules.graph.memory import Memory, is_mutable
from bench.modules.graph.tracing import Traced, dtype, is_foreign, is_switch, name, reached, shape, where
from impls.catalogue import CORE_KEYWORDS
from impls.contract import Attend, Unsupported, declared_options

MOST_REASONS = 3
"""The reasons that a message says at most."""


@dataclass(frozen=True)
class Rewritten:
    """A module that runs a rewritten graph, the cores that were replaced, and those that weren't, with the reasons.

    `unknown` are the softmaxes that belong to no core. `left_out` are the last operators of outputs that don't count,
    as weights that a layer returns besides, which can't be computed without the scores of a core that was replaced.
    """

    module: GraphModule
    replaced: tuple[Core, ...]
    left: tuple[tuple[Core, str], ...]
    unknown: tuple[Softmax, ...] = ()
    left_out: tuple[Node, ...] = ()


def rewritten(graph: Traced, attend: Attend) -> Rewritten:
    """Return a copy of a graph whose cores an attend computes; raises `Unsupported` if it can compute none of them.

    The attend is asked for what CORE_KEYWORDS say; a core that needs one which it doesn't declare is left. What the
    graph computes for outputs that don't count stays, as it does in the module.
    """
    own = replace(graph, module=GraphModule(graph.module, copy.deepcopy(graph.module.graph)))
    nodes, every = own.module.graph, found(own)
    unused = [node for node in nodes.nodes if node.op == "call_function" and not node.users]
    memory, replaced, left = Memory(nodes), list[Core](), list[tuple[Core, str]]()
    for core in every.cores:
        try:
            _replace(core, nodes, memory, attend)
            replaced.append(core)
        except Odd as odd:
            left.append((core, str(odd)))
    if not replaced:
        raise Unsupported(_why_none(every, left, nodes))
    inside = {*reached([core.first for core in replaced], lambda node: node.users)}
    _remove_dead(nodes, {*unused} - inside)
    nodes.lint()
    own.module.recompile()
    still = {*nodes.nodes}
    left_out = tuple(node for node in unused if node not in still and not is_mutable(node))
    return Rewritten(own.module, tuple(replaced), tuple(left), every.unknown, left_out)


def _why_none(every: Found, left: list[tuple[Core, str]], graph: Graph) -> str:
    """Say why no core of a graph could be replaced."""
    reasons = [_placed(reason, where(core.node)) for core, reason in left]
    reasons += [_placed(each.reason, each.lines, "softmax at ") for each in every.unknown]
    if not reasons:
        foreign = _some(f"{name(node)} at {where(node)}" for node in graph.nodes if is_foreign(node))
        hidden = f"; what is inside of an operator of another library is not seen: {foreign}" if foreign else ""
        return f"no attention core was found: there is no softmax in the graph of the module's call{hidden}"
    return f"the module's core can't be replaced: {_some(reasons)}"


def _some(reasons: Iterable[str]) -> str:
    """Return the first of some reasons, each once, and how many more there are."""
    every = [*dict.fromkeys(reasons)]
    more = f"; and {len(every) - MOST_REASONS} more" if len(every) > MOST_REASONS else ""
    return "; ".join(every[:MOST_REASONS]) + more


def _placed(reason: str, place: str, words: str = "") -> str:
    """Return a reason with the place, unless it ends with it."""
    return reason if reason.endswith(f" {place}") else f"{reason} ({words}{place})"


def _replace(core: Core, graph: Graph, memory: Memory, attend: Attend) -> None:
    """Let an attend compute a core; raises `Odd`, and leaves the graph as it was, if it can't."""
    if core.obstacle:
        raise Odd(core.obstacle)
    of = core.found
    with inserted(graph, of.output):
        output = of.returned(graph, _attended(graph, attend, of.as_call(graph, memory)))
        if any(map(is_mutable, memory.sharing(core.node))):  # the attend may keep its output for gradients
            output = called(graph, ATEN.clone.default, output)
    core.node.replace_all_uses_with(output)


def _attended(graph: Graph, attend: Attend, call: Call) -> Node:
    """Return a call of an attend; raises `Odd` for what it doesn't declare, but heads are repeated for it."""
    declared, options = declared_options(attend), call.options
    if call.has_groups and "enable_gqa" not in declared:
        del options["enable_gqa"]
        times = shape(call.query)[1] // shape(call.key)[1]
        key, value = (called(graph, ATEN.repeat_interleave.self_int, each, times, 1) for each in (call.key, call.value))
        call = replace(call, key=key, value=value)
    for keyword in options:
        if keyword not in declared:
            raise Odd(f"the core has {CORE_KEYWORDS[keyword]}, and the attend declares no keyword {keyword}")
    node = graph.call_function(attend, (call.query, call.key, call.value, call.scale), options)
    sizes = *shape(call.query)[:-1], shape(call.value)[-1]
    node.meta["val"] = torch.empty(sizes, dtype=dtype(call.value), device="meta")
    return node


def _remove_dead(graph: Graph, kept: Collection[Node]) -> None:
    """Remove the nodes that nothing needs, but some; a change in place if nothing reads that memory later."""
    memory = Memory(graph)
    for node in reversed([*graph.nodes]):
        if node.op != "call_function" or node.users or is_switch(node) or node in kept:
            continue
        if is_mutable(node) and not _is_dead_change(node, memory):
            continue
        graph.erase_node(node)


def _is_dead_change(node: Node, memory: Memory) -> bool:
    """Return whether a change in place is of memory that the graph made, and that nothing reads later."""
    return memory.root(node).op == "call_function" and next(memory.readers(node), None) is None
