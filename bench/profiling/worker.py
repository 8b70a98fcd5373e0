"""The process that profiles: runs one case under torch.profiler, apart from all timing."""

from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from bench.measure import compilation, visit, workload
from bench.measure.channel import Channel, serve
from bench.plan.case import Point

WARM_CALLS = 3
"""Calls before the profile: the first one compiles, the others fill caches."""

PROFILED_CALLS = 3


def trace(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Write a Chrome trace of some calls of one case; the answer names an objection where it can't run."""
    point = Point(**request["point"])
    reason = visit.obstacle(point)
    if reason:
        return {"event": "traced", "objection": reason}
    channel.announce(request["implementation"], "profile")
    try:
        _trace(point, request["implementation"], request["path"])
    except Exception as error:
        return {"event": "traced", "objection": f"{type(error).__name__}: {error}"}
    return {"event": "traced", "objection": ""}


def _trace(point: Point, implementation: str, path: str) -> None:
    workload.set_up(point)
    work = workload.make(point)
    call = workload.step(workload.subject(work, implementation), work)
    cuda = [ProfilerActivity.CUDA] if point.device != "cpu" else []
    with work.context():
        for _ in range(WARM_CALLS):
            call()
        with profile(activities=[ProfilerActivity.CPU, *cuda], record_shapes=True, profile_memory=True) as profiler:
            for _ in range(PROFILED_CALLS):
                with record_function(f"{implementation} call"):
                    call()
            if cuda:
                torch.cuda.synchronize(point.device)
    profiler.export_chrome_trace(path)


if __name__ == "__main__":
    compilation.name_kernels()
    serve({"trace": trace})
