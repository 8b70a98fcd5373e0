"""The sweep as a suite: one test, parametrized over its points."""

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from bench.engine import admission
from bench.harness import options
from bench.harness.pytest_plugin import WHY
from bench.plan.case import Point
from bench.plan.errors import CannotWrite
from bench.plan.invocation import pytest_bench

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from bench.engine.run import Run
    from bench.harness.progress import LogProgress

CANNOT_GO_ON = 3
"""The exit status of a run that had to stop, such as on a full disk: pytest's own for internal errors."""


def test_sweep(
    point: Point,
    run: "Run",
    progress: "LogProgress",
    benchmark: "BenchmarkFixture",
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> None:
    """Every implementation of the point ends as a row, and none of them as `--fail-on` says that it must not."""
    # slow to import, and the first line should appear at once
    from bench.harness.pytest_bridge import hand_over
    from bench.show.failures import failing
    from bench.show.rows import plain
    from bench.store.table import without_control

    try:
        if run.sweep.effort.spread_s is not None:
            run.spread()
            progress.started()
        if run.sweep.effort.race:
            points = [item.callspec.params["point"] for item in request.session.items if hasattr(item, "callspec")]
            progress.races(run.end_s(len(points)))
            run.race(points, lambda at, look: progress.looked(at, look, without_control(run.run_folder.rows(at))))
        records = run.measure(point)
    except CannotWrite as error:
        goes_on = f"{pytest_bench()} --run {shlex.quote(str(run.folder))}"
        pytest.exit(f"{error}. Mend that, then go on:\n{goes_on}", returncode=CANNOT_GO_ON)
    if not records:
        pytest.skip("it waits: its base was not expected to end within the time")
    rows = without_control(run.run_folder.rows(point))
    progress.finished(rows)
    hand_over(benchmark, records, rows)
    lacks_device = bool(admission.missing_devices([point], run.environment.identity["gpus"]))
    values = plain(rows)
    bad = failing(values, options.fail_on(pytestconfig.option), lacks_device=lacks_device)
    if bad:
        record_property(WHY, ", ".join(reason.brief for reason in bad))
        pytest.fail("; ".join(map(str, bad)), pytrace=False)
    if not (rows["status"] == "ok").any():
        pytest.skip("; ".join(dict.fromkeys(row["detail"] or row["status"] for row in values)))
