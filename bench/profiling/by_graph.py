"""A module's graph with profiler labels for its cores, other softmaxes and modules, with source lines."""

import re
from collections.abc import Mapping
from pathlib import Path

from torch import nn
from torch.fx import GraphModule, Node

from bench.measure import shares
from bench.measure.subjects import Subject
from bench.measure.workload import Workload
from bench.modules.core import wrapped
from bench.modules.graph.cores import Found, Site, look
from bench.modules.graph.running import check
from bench.modules.graph.tracing import module_of, where
from bench.profiling.tables import LINE
from bench.store.profile import CORE


def subject(work: Workload) -> Subject:
    """Return the layer as the labelled graph of its call; each label has a stage and a source line.

    Raises `impls.Unsupported` if the layer can't be traced, or if its operators depend on the values of its inputs.
    """
    model, xs = wrapped(work.layer, tuple(shape[1:] for shape in work.shapes)), work.inputs()
    with work.gradient_mode():
        of = look(model, xs)
        check(of.graph, model, xs)
    return Subject(model, _labelled(of))


def _labelled(of: Found) -> GraphModule:
    numbers, every, graph, labels = shares.belongs(of), shares.parts(of), of.graph, {}
    modules = dict(graph.inner.named_modules())
    for node in graph.module.graph.nodes:
        if node.op == "call_function":
            part = every[numbers[node]] if node in numbers else ""
            labels[node] = f"{_stage(node, part, modules)}{LINE}{_short(where(node))}"
    return shares.with_labels(graph, labels)


def _stage(node: Node, part: shares.Part, modules: Mapping[str, nn.Module]) -> str:
    """Return the name of a node's stage: the part to which it belongs, or the module that calls it."""
    if isinstance(part, str):
        return _kind(module_of(node), modules)
    facts = part.core if isinstance(part, Site) else part.softmax
    path, lines = _kind(facts.layer, modules), _short(facts.lines or where(part.node))
    return f"{CORE} of {path}, {lines}" if isinstance(part, Site) else f"softmax of no core in {path}, {lines}"


def _kind(path: str, modules: Mapping[str, nn.Module]) -> str:
    """Return a module's path with * for its number among siblings of its class; the class for the outermost module."""
    names, above = [], ""
    for name in path.split("."):
        siblings = {type(each) for each in modules[above].children()}
        is_one_of_many = name.isdigit() and len(siblings) == 1 and len([*modules[above].children()]) > 1
        names.append("*" if is_one_of_many else name)
        above = f"{above}.{name}".removeprefix(".")
    return ".".join(names).removeprefix("inner").removeprefix(".") or type(modules["inner"]).__name__


def _short(line: str) -> str:
    """Return a source line without the folder of packages or the working folder."""
    return re.sub(r"^.*site-packages/", "", line).removeprefix(f"{Path.cwd()}/")
