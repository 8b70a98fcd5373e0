"""Attention's share of a profiled call: its cores, their layers, and softmaxes that belong to no core."""

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.profiler import profile, record_function

import impls
from bench.measure.devices import Device
from bench.measure.inspection import NO_KERNEL
from bench.measure.recorded import Call, recorded
from bench.modules.graph.cores import Found, Other, Site
from bench.modules.graph.reading import between
from bench.modules.graph.tracing import Traced, module_of, name, reached
from bench.plan.device import HOST, Kind

CALL = "model call"
"""The label of a call."""

PART = "model part "
"""The prefix of a part's label; the part's number follows."""

PRODUCTS = ("matmul", "bmm", "mm", "baddbmm", "einsum")
"""The products that bound the operators around a softmax outside of cores."""

LAYERS, MOST = ("linear", "addmm", "convolution", "conv1d", "conv2d", "layer_norm", "embedding"), 100
"""The operators at which the search around a softmax stops, and the most operators that it visits in each direction."""

Part = Site | Other | str
"""A core, another softmax, or the path of a layer."""


def parts(of: Found) -> list[Part]:
    """Return the parts whose times are separated, in the order of their numbers."""
    return [*of.cores, *of.unknown, *dict.fromkeys(site.core.layer for site in of.cores)]


def labelled(of: Found) -> GraphModule:
    """Return a copy of a graph in which each operator runs under the label of its part."""
    return with_labels(of.graph, {node: f"{PART}{number}" for node, number in belongs(of).items()})


def with_labels(graph: Traced, labels: Mapping[Node, str]) -> GraphModule:
    """Return a copy of a graph in which operators run under these labels for the profiler."""
    own = copy.deepcopy(graph.module.graph)
    running, handle = "", None
    for before, node in zip(graph.module.graph.nodes, [*own.nodes], strict=True):
        label = labels.get(before, "")
        if label == running:
            continue
        with own.inserting_before(node):
            if handle is not None:
                own.call_function(torch.ops.profiler._record_function_exit._RecordFunction, (handle,))
            enter = torch.ops.profiler._record_function_enter_new.default
            handle = own.call_function(enter, (label, None)) if label else None
        running = label
    return GraphModule(graph.module, own)


def belongs(of: Found) -> dict[Node, int]:
    """Return for each node the number of the part to which it belongs."""
    numbers, graph = dict[Node, int](), of.graph
    layers = {path: number for number, path in enumerate(parts(of)) if isinstance(path, str)}
    for node in graph.module.graph.nodes:
        if node.op == "call_function" and (inside := [path for path in layers if _is_in(module_of(node), path)]):
            numbers[node] = layers[max(inside, key=len)]
    for number, softmax in enumerate(of.unknown, len(of.cores)):
        numbers |= dict.fromkeys(_around(softmax.node), number)
    needed = {*reached(graph.module.graph.find_nodes(op="output"), lambda node: node.all_input_nodes)}
    for number, site in enumerate(of.cores):
        numbers |= dict.fromkeys(_between(site.first, site.node) | (_inside(site) - needed), number)
    return numbers


def _inside(site: Site) -> set[Node]:
    """Return the nodes that depend on a core's scores; another core drops the ones that no output needs."""
    return {*reached([site.first], lambda node: [] if node is site.node else node.users)}


def _is_in(path: str, layer: str) -> bool:
    return not layer or path == layer or path.startswith(f"{layer}.")


def _between(first: Node, last: Node) -> set[Node]:
    return {first, *between(first, last)}


def _around(softmax: Node) -> set[Node]:
    """Return a softmax, the products before and after it, and the operators between them."""
    before = _near(softmax, lambda node: node.all_input_nodes)
    after = _near(softmax, lambda node: node.users)
    inside = {softmax}
    for product in (before | after) - {softmax}:
        if name(product) in PRODUCTS:
            inside |= _between(product, softmax) if product in before else _between(softmax, product)
    return inside


def _near(softmax: Node, others: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Return the operators from a softmax in one direction, up to products inclusive, and layers exclusive."""

    def following(node: Node) -> Iterable[Node]:
        if node is not softmax and name(node) in PRODUCTS:
            return
        yield from (each for each in others(node) if each.op == "call_function" and name(each) not in LAYERS)

    return {*reached([softmax], following, MOST)}


def profiled(call: Callable[[], object], of: Found, on: Device) -> dict[str, Any]:
    """Profile a call of a labelled graph; return its seconds in total, in each core, in each other softmax, in layers.

    `layers` is the time of all layers that have a core, including the cores. Raises `impls.Unsupported` if the profile
    is empty.
    """
    with profile(activities=on.activities) as profiler, record_function(CALL):
        on.timer(HOST)(call, 1)
    (recording,) = recorded(profiler, CALL)
    times = seconds(recording, on.kind)
    if not times[CALL]:
        raise impls.Unsupported(NO_KERNEL)
    by_part = [times[f"{PART}{number}"] for number in range(len(parts(of)))]
    cores, rest = by_part[: len(of.cores)], by_part[len(of.cores) :]
    others, layers = rest[: len(of.unknown)], rest[len(of.unknown) :]
    return {"total_s": times[CALL], "cores": cores, "others": others, "layers": sum(layers) + sum(cores)}


def seconds(call: Call, kind: Kind) -> Mapping[str, float]:
    """Return the seconds of a call and of each label in it, including the label's backward pass."""
    times = defaultdict(float, {CALL: call.whole_s(kind)})
    for event, place in call.places.items():
        times[place.label] += call.part_s(event, kind)
    return times
