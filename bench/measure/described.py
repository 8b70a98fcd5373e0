"""Describe the module of one side of a duel, in a process that has imported that side's code."""

import sys
from dataclasses import replace
from typing import Any

from bench.measure import user_code, workload
from bench.measure.forking import Channel
from bench.plan.device import CPU
from bench.sampling.requests import Describe
from impls.catalogue import name_of
from impls.lookup import check


def described(request: Describe, channel: Channel) -> dict[str, Any]:
    """Return the shapes of a module's input, output and weights, and the packages that it and an implementation import.

    For each package these are its file, a digest of its sources, and its version. Raises as `workload.make` does.
    """
    channel.announce("model")
    before, point = {*sys.modules}, replace(request.point, device=CPU.name)
    workload.set_up(point)
    work = workload.make(point)
    check(request.implementation)
    named = {name_of(name).module.partition(".")[0] for name in (point.layer, request.implementation)}
    modules = user_code.imported_since(before, named)
    weights = [(name, [*tensor.shape]) for name, tensor in workload.weights(work.layer).items()]
    return {
        "input": " and ".join(str([*shape]) for shape in work.shapes),
        "output": str([*work.direction.shape]),
        "weights": weights,
        "modules": {name: (*of, str(getattr(sys.modules[name], "__version__", ""))) for name, of in modules.items()},
    }
