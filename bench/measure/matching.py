"""What a duel asks of the modules of its sides: a description, and whether one computes the other's function.

Each is asked of a process that has imported the side's own code.
"""

import dataclasses
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench.measure import user_code, workload
from bench.measure.forking import Channel
from bench.modules.graph.cores import numbers_of_heads
from bench.modules.wrapper import copied
from bench.plan.case import Point
from bench.plan.device import CPU
from impls.catalogue import parse
from impls.lookup import check
from impls.sameness import SAME

OUTPUT = ".output"
"""The ending of the file with the output that belongs to saved weights."""

COMPARED = 2
"""The items with which two modules are compared in float64."""


def described(request: Mapping[str, Any], channel: Channel) -> dict[str, Any]:
    """Return the shapes of a module's input, output and weights, and the code that it and an implementation bring in.

    Of each package that is its file, its version, and a digest of its sources. Raises as `workload.make` does.
    """
    channel.announce("model")
    before, point = {*sys.modules}, Point(**{**request["point"], "device": CPU.name})
    workload.set_up(point)
    work = workload.make(point)
    bases = [parse(name).base for name in (point.layer, request["implementation"])]
    check(request["implementation"])
    named = {base.partition(":")[0].partition(".")[0] for base in bases}
    modules = user_code.imported_since(before, named)
    weights = [(name, [*tensor.shape]) for name, tensor in workload.weights(work.layer).items()]
    return {
        "input": " and ".join(str([*shape]) for shape in work.shapes),
        "output": str([*work.direction.shape]),
        "weights": weights,
        "heads": sorted({heads for module in work.layer.modules() for heads in numbers_of_heads(module)}),
        "modules": {name: (*of, getattr(sys.modules[name], "__version__", "")) for name, of in modules.items()},
    }


def computed(request: Mapping[str, Any], channel: Channel) -> dict[str, Any]:
    """Write the weights and values of a module into the file `path`, and what it computes of them beside it."""
    work, path = _on_cpu(request, channel), Path(request["path"])
    workload.save(work, str(path))
    torch.save(_in_float64(work.layer, work), path.with_suffix(OUTPUT))
    return {}


def matched(request: Mapping[str, Any], channel: Channel) -> dict[str, Any]:
    """Look for the first of some `ways` to take the weights in `path` with which a module computes the same.

    Return its number, None without one; how far the best one is off, in units of the largest value; and how many were
    tried.
    """
    work, path = _on_cpu(request, channel), Path(request["path"])
    expected, best = torch.load(path.with_suffix(OUTPUT), weights_only=True), math.inf
    for number, sources in enumerate(request["ways"]):
        channel.announce("weights")
        error = _error(work, workload.GivenWeights(str(path), sources), expected)
        best = min(best, error)
        if error <= SAME:
            return {"number": number, "error": error, "tried": number + 1}
    return {"number": None, "error": best if math.isfinite(best) else None, "tried": len(request["ways"])}


def _on_cpu(request: Mapping[str, Any], channel: Channel) -> workload.Workload:
    """Return the workload of a point on the CPU, in float32."""
    channel.announce("model")
    point = Point(**{**request["point"], "device": CPU.name, "dtype": "float32"})
    workload.set_up(point)
    return workload.make(point)


def _error(work: workload.Workload, given: workload.GivenWeights, expected: torch.Tensor) -> float:
    """Return how far a layer with these weights is off, relative to the largest value; infinity for another shape."""
    layer = copied(work.layer)
    values = workload.load(layer, given)["values"]
    y = _in_float64(layer, dataclasses.replace(work, values=values))
    if y.shape != expected.shape:
        return math.inf
    error = float((y - expected).abs().max()) / float(expected.abs().max())
    return math.inf if math.isnan(error) else error


def _in_float64(layer: nn.Module, work: workload.Workload) -> torch.Tensor:
    xs = work.items(COMPARED, torch.float64)
    with torch.no_grad():
        y: torch.Tensor = copied(layer).to(torch.float64)(*xs)
        return y.double()
