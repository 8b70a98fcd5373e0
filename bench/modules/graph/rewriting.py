"""Rewrite a graph so that an attend computes its cores."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch.fx import Graph, GraphModule, Node

from bench.modules.graph.cores import Call, Found, Other, Site, found, inserted
from bench.modules.graph.reading import ATEN, Odd, called
from bench.modules.graph.tracing import Traced, dtype, is_foreign, is_mutable, name, reached, shape, where
from impls.catalogue import CORE_KEYWORDS
from impls.contract import Attend, Unsupported, declared_options

MOST_REASONS = 3
"""The most reasons in a message."""


@dataclass(frozen=True)
class Rewritten:
    """A module that runs a rewritten graph, the replaced cores, and the ones that are `left`, with reasons.

    `unknown` are the softmaxes that belong to no core.
    """

    module: GraphModule
    replaced: tuple[Site, ...]
    left: tuple[tuple[Site, str], ...]
    unknown: tuple[Other, ...] = ()


def rewritten(graph: Traced, attend: Attend) -> Rewritten:
    """Return a copy of a graph whose cores an attend computes; raises `Unsupported` if it can compute none of them.

    A core that needs one of CORE_KEYWORDS which the attend doesn't declare is left. Operators for outputs that don't
    count stay, as in the module, unless they use a replaced core's scores.
    """
    own = replace(graph, module=GraphModule(graph.module, copy.deepcopy(graph.module.graph)))
    nodes, every = own.module.graph, found(own)
    replaced, left = list[Site](), list[tuple[Site, str]]()
    for site in every.cores:
        try:
            _replace(site, nodes, attend)
            replaced.append(site)
        except Odd as odd:
            left.append((site, str(odd)))
    if not replaced:
        raise Unsupported(_why_none(every, left, nodes))
    _remove_dead(nodes, replaced)
    nodes.lint()
    own.module.recompile()
    return Rewritten(own.module, tuple(replaced), tuple(left), every.unknown)


def _why_none(every: Found, left: Iterable[tuple[Site, str]], graph: Graph) -> str:
    reasons = [
        *(reason if where(site.node) in reason else f"{reason} (core at {where(site.node)})" for site, reason in left),
        *(each.softmax.reason for each in every.unknown),
    ]
    if not reasons:
        foreign = ", ".join(f"{name(node)} at {where(node)}" for node in graph.nodes if is_foreign(node))
        hidden = f"; operators of other libraries can't be looked into: {foreign}" if foreign else ""
        return f"no attention core was found, because the graph of the module's call has no softmax{hidden}"
    said = [*dict.fromkeys(reasons)]
    more = f"; and {len(said) - MOST_REASONS} more" if len(said) > MOST_REASONS else ""
    return f"the module's core can't be replaced: {'; '.join(said[:MOST_REASONS])}{more}"


def _replace(site: Site, graph: Graph, attend: Attend) -> None:
    """Replace a core by a call of an attend; raises `Odd`, with the graph unchanged, if the attend can't compute it."""
    if site.core.obstacle:
        raise Odd(site.core.obstacle)
    with inserted(graph, site.node):
        output = site.of.returned(graph, _attended(graph, attend, site.of.as_call(graph)))
        if any(map(is_mutable, site.node.users)):  # the attend may keep its output for gradients
            output = called(graph, ATEN.clone.default, output)
    site.node.replace_all_uses_with(output)


def _attended(graph: Graph, attend: Attend, call: Call) -> Node:
    """Insert a call of an attend; raises `Odd` for an undeclared keyword, except that grouped heads are repeated."""
    declared, options = declared_options(attend), call.options
    if call.has_groups and "enable_gqa" not in declared:
        del options["enable_gqa"]
        times = shape(call.query)[1] // shape(call.key)[1]
        key, value = (called(graph, ATEN.repeat_interleave.self_int, each, times, 1) for each in (call.key, call.value))
        call = replace(call, key=key, value=value)
    for keyword in options:
        if keyword not in declared:
            raise Odd(f"the core has {CORE_KEYWORDS[keyword]}, but the attend declares no keyword {keyword}")
    node = graph.call_function(attend, (call.query, call.key, call.value, call.scale), options)
    sizes = *shape(call.query)[:-1], shape(call.value)[-1]
    node.meta["val"] = torch.empty(sizes, dtype=dtype(call.value), device="meta")
    return node


def _remove_dead(graph: Graph, replaced: Iterable[Site]) -> None:
    """Remove the replaced cores, unused results of their scores, and the nodes that only these needed."""
    inside = {*reached([site.first for site in replaced], lambda node: node.users)}
    needed: set[Node] = set()
    for node in reversed([*graph.nodes]):
        is_dead = node.op == "call_function" and not node.users
        if is_dead and (node in inside or (node in needed and not is_mutable(node))):
            needed.update(node.all_input_nodes)
            graph.erase_node(node)
