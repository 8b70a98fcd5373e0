"""The shares of a profiled call that attention takes: its cores, their layers, and softmaxes that belong to no core."""

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
"""The beginning of the label of operators that belong to a core, to another softmax or to a layer; a number follows."""

PRODUCTS = ("matmul", "bmm", "mm", "baddbmm", "einsum")
"""The operators at which the surroundings of a softmax that belongs to no core end."""

LAYERS, MOST = ("linear", "addmm", "convolution", "conv1d", "conv2d", "layer_norm", "embedding"), 100
"""The operators beyond which no scores are looked for, and how many are looked at in each direction at most."""

Part = Site | Other | str
"""What operators can belong to; a text is the path of a layer."""


def parts(of: Found) -> list[Part]:
    """Return the parts whose time is told apart, in the order of their labels."""
    return [*of.cores, *of.unknown, *dict.fromkeys(site.core.layer for site in of.cores)]


def labelled(of: Found) -> GraphModule:
    """Return a copy of a graph that tells the profiler to which of the `parts` its operators belong."""
    return with_labels(of.graph, {node: f"{PART}{number}" for node, number in belongs(of).items()})


def with_labels(graph: Traced, labels: Mapping[Node, str]) -> GraphModule:
    """Return a copy of a graph that tells the profiler the labels of its operators."""
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
    """Return the number of the part to which each node belongs."""
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
    """Return what is computed from the scores of a core; with another core none of it is, if nothing needs it."""
    return {*reached([site.first], lambda node: [] if node is site.node else node.users)}


def _is_in(path: str, layer: str) -> bool:
    return not layer or path == layer or path.startswith(f"{layer}.")


def _between(first: Node, last: Node) -> set[Node]:
    return {first, *between(first, last)}


def _around(softmax: Node) -> set[Node]:
    """Return a softmax with the products beside it, and what is done to scores and weights between them."""
    before = _near(softmax, lambda node: node.all_input_nodes)
    after = _near(softmax, lambda node: node.users)
    inside = {softmax}
    for product in (before | after) - {softmax}:
        if name(product) in PRODUCTS:
            inside |= _between(product, softmax) if product in before else _between(softmax, product)
    return inside


def _near(softmax: Node, others: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Return the operators from a softmax on, up to products, and to layers, which are none of them."""

    def following(node: Node) -> Iterable[Node]:
        if node is not softmax and name(node) in PRODUCTS:
            return
        yield from (each for each in others(node) if each.op == "call_function" and name(each) not in LAYERS)

    return {*reached([softmax], following, MOST)}


def profiled(call: Callable[[], object], of: Found, on: Device) -> dict[str, Any]:
    """Return the seconds of a profiled call of a labelled graph: in all, in each core and other softmax, in layers.

    `layers` is the time of all layers that have a core, with the cores. Raises `impls.Unsupported` if the profiler saw
    nothing of the call.
    """
    with profile(activities=on.activities) as profiler, record_function(CALL):
        on.timer(HOST)(call, 1)
    times = seconds(recorded(profiler, CALL), on.kind)
    if not times[CALL]:
        raise impls.Unsupported(NO_KERNEL)
    by_part = [times[f"{PART}{number}"] for number in range(len(parts(of)))]
    cores, rest = by_part[: len(of.cores)], by_part[len(of.cores) :]
    others, layers = rest[: len(of.unknown)], rest[len(of.unknown) :]
    return {"total_s": times[CALL], "cores": cores, "others": others, "layers": sum(layers) + sum(cores)}


def seconds(call: Call, kind: Kind) -> Mapping[str, float]:
    """Return the seconds of a call and of each label in it, with those of the backward pass of what ran there."""
    times = defaultdict(float, {CALL: call.whole_s(kind)})
    for event, place in call.places.items():
        times[place.label] += call.part_s(event, kind)
    return times
