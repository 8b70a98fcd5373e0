"""The process that calls one case without any instrumentation."""

import json
import sys
from time import perf_counter

from bench.measure import clock
from bench.measure.devices import device
from bench.measure.judge import obstacle
from bench.plan.case import Case, Point
from bench.profiling.capture import WARM_CALLS
from bench.profiling.worker import call_of
from bench.store import units


def line(case: Case, calls: int) -> str:
    """Call a case `calls` times after a warm-up, and return a line with the seconds that it took."""
    if reason := obstacle(case.point):
        raise RuntimeError(reason)
    on = device(case.point.device)
    with call_of(case, labelled=False) as call:
        for _ in range(WARM_CALLS):
            call()
        clock.prepare(call, calls)
        on.synchronize()
        begin_s = perf_counter()
        for _ in range(calls):
            call()
        on.synchronize()
        took_s = perf_counter() - begin_s
    return f"{case.name}: {calls} calls in {units.seconds(took_s)}, {units.seconds(took_s / calls)} each"


if __name__ == "__main__":
    name, number, point = sys.argv[1:]
    try:
        print(line(Case(Point(**json.loads(point)), name), int(number)))
    except Exception as error:
        sys.exit(f"attention-bench: {type(error).__name__}: {error}")
