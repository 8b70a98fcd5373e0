"""The process that profiles one case with torch.profiler, apart from all timing."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from bench.measure import clock, compilation, identity, packed, subjects, workload
from bench.measure.devices import device
from bench.measure.forking import Channel, die_with_parent, serve
from bench.measure.inspection import NO_KERNEL
from bench.measure.judge import obstacle
from bench.plan.case import Case
from bench.profiling import by_graph, trace_files
from bench.profiling.capture import capture
from bench.profiling.tables import kernels, operators, stages
from bench.sampling.requests import Profiled, Trace
from impls.catalogue import GRAPH


def trace(request: Trace, channel: Channel) -> Profiled:
    """Profile one case and write its trace; reply with the profile, or the reason if the case can't run."""
    point = request.point
    reason = obstacle(point)
    if reason:
        return Profiled(reason)
    channel.announce("profile")
    try:
        profile = _profile(Case(point, request.implementation), Path(request.path))
    except Exception as error:
        return Profiled(f"{type(error).__name__}: {error}")
    return Profiled("", profile, identity.torch_facts())


@contextmanager
def call_of(case: Case, *, labelled: bool = True) -> Iterator[clock.Call]:
    """Yield a call of a case in its gradient mode; it is built outside of that mode, as in a run.

    Built inside, torch would choose other operators. A graph is `labelled` with its stages.
    """
    workload.set_up(case.point)
    work = workload.make(case.point)
    is_graph = labelled and case.implementation == GRAPH
    subject = by_graph.subject(work) if is_graph else subjects.subject(work, case.implementation)
    call = subjects.step(subject, packed.formed(work, subject))
    with work.gradient_mode():
        yield call


def _profile(case: Case, path: Path) -> dict[str, Any]:
    """Profile a case; return the profile's content for JSON, without its case and origin."""
    at = case.point
    with call_of(case) as call:
        captured = capture(call, f"{case.implementation} call", device(at.device), at.timing, at.threads)
        if not (at.kind.is_timed_by_host or captured.calls[-1].device):
            raise RuntimeError(NO_KERNEL)
        trace_files.record(call, path.parents[1], case)
    captured.profiler.export_chrome_trace(str(path))
    return {
        "calls": len(captured.calls),
        "timed_s": mean(captured.samples.values_s),
        "profiled_s": captured.profiled_s,
        "samples": asdict(captured.samples),
        "operators": [*map(vars, operators(captured.profiler, captured.calls, at.kind))],
        "stages": [*map(vars, stages(captured.calls, at.kind))],
        "kernels": [*map(vars, kernels(captured.calls[-1]))],
    }


if __name__ == "__main__":
    gc.enable()
    compilation.name_kernels()
    die_with_parent()
    serve({Trace: trace}, Channel(int(sys.argv[1])))
