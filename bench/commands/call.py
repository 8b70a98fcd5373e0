"""Call one case of a run without any instrument, for a profiler of the system."""

import argparse
import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path

from bench.engine.admission import check_devices
from bench.engine.variables import environment
from bench.plan.errors import WrongRequest
from bench.plan.invocation import SUITE
from bench.plan.sweep import Sweep
from bench.profiling import traces

MODULE = f"{SUITE}.profiling.calls"


def run(arguments: argparse.Namespace) -> int:
    """Turn this process into one that calls the case, with the allocator and threads of the run.

    Raises WrongRequest if several cases agree with the selector, or none.
    """
    if arguments.calls < 1:
        raise WrongRequest(f"--calls {arguments.calls} must be at least 1")
    table = arguments.run.table
    (case, *others) = traces.agreeing(table[table["status"] == "ok"], arguments.case)
    if others:
        names = ", ".join(each.name for each in (case, *others))
        raise WrongRequest(
            f"--case {arguments.case} must match one case, but it matches {1 + len(others)}; add conditions: {names}"
        )
    at = case.point
    check_devices(Sweep("call", (at,), (case.implementation,)))
    cache = Path(tempfile.gettempdir(), f"attention-bench-call-{os.getuid()}")
    words = [case.implementation, str(arguments.calls), json.dumps(dataclasses.asdict(at))]
    variables = environment(at.allocator, at.threads, cache, kind=at.kind)
    os.execve(sys.executable, [sys.executable, "-m", MODULE, *words], variables)  # noqa: S606 - no shell
