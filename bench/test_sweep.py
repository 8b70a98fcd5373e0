"""The sweep as a suite: one test, parametrized over its points."""

import shlex

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.engine.run import Run
from bench.plan.case import Point
from bench.plan.errors import CannotWrite
from bench.progress import Progress
from bench.pytest_bridge import hand_over, samples

CANNOT_GO_ON = 3
"""The exit status of a run that had to stop, such as on a full disk: pytest's own for what is no test's fault."""


def test_sweep(point: Point, run: Run, progress: Progress, benchmark: BenchmarkFixture) -> None:
    """Every implementation of the point ends as a row, and at least one of them could be measured."""
    try:
        records = run.measure(point)
    except CannotWrite as error:
        goes_on = f"python -m pytest bench --run {shlex.quote(str(run.folder))}"
        pytest.exit(f"{error}. Mend that, then go on with: {goes_on}", returncode=CANNOT_GO_ON)
    rows = run.rows(point)
    progress.finished(rows)
    hand_over(benchmark, samples(records, rows))
    if (rows["status"] == "ok").any():
        return
    reasons = "; ".join(dict.fromkeys(rows["detail"].fillna("")))
    if (rows["status"] == "unsupported").all():
        pytest.skip(reasons)
    pytest.fail(f"no implementation could be measured: {reasons}", pytrace=False)
