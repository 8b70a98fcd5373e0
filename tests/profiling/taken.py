"""Calls under the profiler in this process, for tests of what is made of them."""

from functools import cache

from bench.measure import workload
from bench.plan.case import Point
from bench.profiling.capture import Capture, take
from bench.profiling.recorded import Call, recorded


@cache
def captured(point: Point, implementation: str) -> Capture:
    """Return the pairs of calls of a case; each case is profiled once in a session."""
    work = workload.make(point)
    call = workload.step(workload.subject(work, implementation), work)
    with work.context():
        return take(call, f"{implementation} call", point.device, point.timing)


def kept_call(point: Point, implementation: str) -> Call:
    """Return the call that is kept whole of a case."""
    found = captured(point, implementation)
    return recorded(found.kept.profiler, found.label)
