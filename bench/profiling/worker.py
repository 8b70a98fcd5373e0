"""The process that profiles: runs one case under torch.profiler, apart from all timing."""

import dataclasses
from pathlib import Path
from typing import Any

from bench.measure import compilation, facts, visit, workload
from bench.measure.channel import Channel, serve
from bench.plan.case import Point
from bench.profiling import capture, perfetto
from bench.profiling.blocks import allocated
from bench.profiling.operators import operators
from bench.profiling.recorded import recorded
from bench.profiling.spans import spans
from bench.profiling.stages import stages


def trace(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Profile one case and write its trace; the answer holds the profile, or an objection where it can't run."""
    point = Point(**request["point"])
    reason = visit.obstacle(point)
    if reason:
        return {"event": "traced", "objection": reason}
    channel.announce(request["implementation"], "profile")
    try:
        profile = _profile(point, request["implementation"], Path(request["path"]))
    except Exception as error:
        return {"event": "traced", "objection": f"{type(error).__name__}: {error}"}
    return {"event": "traced", "objection": "", "profile": profile, "facts": facts.torch_facts()}


def _profile(point: Point, implementation: str, path: Path) -> dict[str, Any]:
    workload.set_up(point)
    work = workload.make(point)
    call = workload.step(workload.subject(work, implementation), work)
    with work.context():
        captured = capture.take(call, f"{implementation} call", point.device, point.timing)
    perfetto.save(captured.kept.profiler, path)
    return summary(captured, point)


def summary(captured: capture.Capture, point: Point) -> dict[str, Any]:
    """Return what a profile holds beside its case and origin, as JSON has it."""
    middle = captured.middle
    calls = [recorded(pair.profiler, captured.label) for pair in middle]
    blocks = [allocated(pair.profiler, call, point.device) for pair, call in zip(middle, calls, strict=True)]
    kept = middle.index(captured.kept)
    return {
        "calls": len(calls),
        "timed_s": captured.timed_s,
        "profiled_s": captured.profiled_s,
        "operators": [dataclasses.asdict(each) for each in operators(calls, blocks, point.device)],
        "stages": [dataclasses.asdict(each) for each in stages(calls, blocks, point)],
        "spans": [dataclasses.asdict(each) for each in spans(calls[kept])],
        "blocks": [dataclasses.asdict(each.block) for each in blocks[kept]],
    }


if __name__ == "__main__":
    compilation.name_kernels()
    serve({"trace": trace})
