"""A graph whose cores are computed by an attend."""

import copy
from dataclasses import dataclass

from torch.fx import GraphModule

from impls.contract import Attend, Unsupported
from impls.graph import rough
from impls.graph.cores import Core, found
from impls.graph.tracing import Traced, where


@dataclass(frozen=True)
class Rewritten:
    """A module that runs a rewritten graph, the cores that were replaced, and those that were left, with reasons."""

    module: GraphModule
    replaced: tuple[Core, ...]
    left: tuple[tuple[Core, str], ...]


def rewritten(graph: Traced, attend: Attend) -> Rewritten:
    """Return a copy of a graph whose cores are computed by an attend; raises `Unsupported` if none can be."""
    own = GraphModule(graph.module, copy.deepcopy(graph.module.graph))
    twin = Traced(own, graph.inner)
    every = {id(core.way): core for core in found(twin).cores}
    done, failed, unknown = rough.replace(own, attend)
    by_node = {core.node: core for core in every.values()}
    if not done:
        reasons = [f"{why} at {where(each.last)}" for each, why in failed]
        reasons += [f"{each.why} (softmax at {where(each.softmax)})" for each in unknown]
        raise Unsupported("no core of the graph can be replaced: " + ("; ".join(reasons) or "it has no softmax"))
    return Rewritten(
        own,
        tuple(by_node[each.last] for each in done if each.last in by_node),
        tuple((by_node[each.last], why) for each, why in failed if each.last in by_node),
    )
