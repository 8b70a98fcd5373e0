"""Chrome traces of chosen cases, written by a worker of their own."""

import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.engine.worker import Died, Worker
from bench.plan.case import Case
from bench.plan.errors import WrongRequest

MODULE = "bench.profiling.worker"
TRACES = "traces"

TRACE_S = 300.0
"""The longest that one case may take, its compilation included."""


def write(cases: Sequence[Case], run: Path) -> Iterator[tuple[Case, Path, str]]:
    """Profile the cases one after the other, yielding each with its trace file and why there is none, if so.

    Raises WrongRequest when the folder `traces` of the run can't be made.
    """
    folder = run / TRACES
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongRequest(f"the trace folder {folder} can't be made: {error.strerror}") from None
    with tempfile.TemporaryDirectory(prefix="attention-bench-compiled-") as cache:
        for case in cases:
            path = folder / f"{case.name.replace(':', '.')}.json.gz"
            yield case, path, _trace(case, path, Path(cache))


def _trace(case: Case, path: Path, cache: Path) -> str:
    request = {
        "request": "trace",
        "point": dataclasses.asdict(case.point),
        "implementation": case.implementation,
        "path": str(path.absolute()),
    }
    try:
        with Worker(case.point.allocator, case.point.threads, cache, MODULE) as worker:
            worker.ready()
            objection: str = worker.ask(request, TRACE_S)["objection"]
            return objection
    except Died as death:
        return death.detail
