"""The sweep as a suite: one test, parametrized over its points, which are measured before."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from bench.harness.pytest_plugin import WHY, reasons
from bench.plan.case import Point

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from bench.engine.run import Run


def test_sweep(
    point: Point,
    run: "Run",
    benchmark: "BenchmarkFixture",
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> None:
    """Every implementation of the point ends as a row, and none of them as `--fail-on` says that it must not."""
    # slow to import, and the first line should appear at once
    from bench.harness.pytest_bridge import hand_over

    records = run.records.of(point)
    if not records:
        pytest.skip("it waits: its base was not expected to end within the time")
    rows = run.records.rows(point)
    hand_over(benchmark, records, rows)
    if bad := reasons(pytestconfig, run, point):
        record_property(WHY, ", ".join(reason.brief for reason in bad))
        pytest.fail("; ".join(map(str, bad)), pytrace=False)
    if all(row["status"] != "ok" for row in rows):
        pytest.skip("; ".join(dict.fromkeys(row["detail"] or row["status"] for row in rows)))
