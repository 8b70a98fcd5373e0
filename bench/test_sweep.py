"""The sweep as a suite: one test, parametrized over its points."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.engine.run import Run
from bench.plan.case import Point
from bench.progress import Progress
from bench.pytest_bridge import hand_over, samples


def test_sweep(point: Point, run: Run, progress: Progress, benchmark: BenchmarkFixture) -> None:
    """Every implementation of the point ends as a row, and at least one of them could be measured."""
    records = run.measure(point)
    rows = run.rows(point)
    progress.finished(rows)
    hand_over(benchmark, samples(records, rows))
    if (rows["status"] == "ok").any():
        return
    reasons = "; ".join(dict.fromkeys(rows["detail"].fillna("")))
    if (rows["status"] == "unsupported").all():
        pytest.skip(reasons)
    pytest.fail(f"no implementation could be measured: {reasons}", pytrace=False)
