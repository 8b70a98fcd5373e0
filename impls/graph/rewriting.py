"""A graph whose cores are computed by an attend, and a module that runs its own graph."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from impls.contract import Attend, Implementation, Unsupported
from impls.graph import rough
from impls.graph.cores import Core, found
from impls.graph.tracing import Traced, traced, where

BY_GRAPH = "graph"


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


class InGraph(nn.Module):
    """A module that runs the graph of its own call, traced at the first call with inputs of their shapes.

    `attend` computes the graph's cores; None leaves the graph as it is.
    """

    def __init__(self, inner: nn.Module, attend: Attend | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.attend = attend
        self.adapted_by = BY_GRAPH
        self.graphs: dict[Any, Callable[..., Tensor]] = {}

    def forward(self, *xs: Tensor) -> Tensor:
        """Return what the graph of these inputs returns."""
        key = self.training, torch.is_autocast_enabled(), *((x.shape, x.dtype, x.device) for x in xs)
        if key not in self.graphs:
            self.graphs[key] = self.made(*xs)
        return self.graphs[key](*xs)

    def made(self, *xs: Tensor) -> Callable[..., Tensor]:
        """Return the graph for inputs, rewritten if there is an attend."""
        graph = traced(self.inner, xs)
        return graph.module if self.attend is None else rewritten(graph, self.attend).module


def unchanged(layer: nn.Module) -> Implementation:
    """Return the layer as the graph of its call, with its cores unchanged: what tracing alone does to its time."""
    return InGraph(layer)
