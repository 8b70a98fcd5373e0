"""Each measured case is a test, whose rounds in the table of pytest-benchmark are its samples."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.rows import Row, grouped, plain, point_of
from bench.commands import options
from bench.conftest import FOLDER, SWEEP
from bench.engine.admission import missing_devices
from bench.plan.case import CASE_COLUMNS, Case
from bench.show.failures import failing

SHOWN = ("status", "latency_s", "latency_low_s", "latency_high_s", "speedup", "speedup_low", "speedup_high")
"""The columns of a row that `--benchmark-json` holds besides the case's."""


@dataclass(frozen=True)
class Measured:
    """A case's results in a run: its row, its samples in seconds per call, and why it fails the run, if it does."""

    row: Row
    samples_s: tuple[float, ...]
    failure: str


Held = dict[str, Measured]
"""The results of a run by the case's name."""

HELD = pytest.StashKey[Held]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the test with each case and a clock that reads the run's samples; with nothing for `--fixtures`."""
    stash = metafunc.config.stash
    sweep = stash.get(SWEEP, None)
    stash[HELD] = held = _held(stash[FOLDER], options.fail_on(metafunc.config.option)) if FOLDER in stash else {}
    cases = [*sweep.cases()] if sweep else []
    metafunc.parametrize(
        ("point", "implementation"),
        [pytest.param(case.point.name, case.implementation, id=case.name, marks=_mark(case, held)) for case in cases],
    )


def _mark(case: Case, held: Held) -> pytest.MarkDecorator:
    """Return the mark that gives pytest-benchmark a case's group and the clock that reads its samples."""
    samples_s = held[case.name].samples_s if case.name in held else ()
    return pytest.mark.benchmark(group=case.point.name, timer=_clock(samples_s))


def _clock(samples_s: Iterable[float]) -> Callable[[], float]:
    """Return a clock that reads 0 before each sample and the sample's seconds after it."""
    return itertools.chain.from_iterable((0.0, sample_s) for sample_s in samples_s).__next__


def _held(folder: Path, fail_on: tuple[str, ...] | None) -> Held:
    """Return a run's results for each case with a row; cases fail by the same rule as the exit status of `run`."""
    saved = AnalysedRun(folder)
    if not saved.records:
        return {}
    gpus = saved.environment.identity["gpus"] if saved.environment else []
    records = grouped([record for record in saved.records if record.status == "ok"], lambda record: record.case)
    held: Held = {}
    for point, rows in grouped(plain(saved.table), point_of).items():
        lacks = bool(missing_devices([point], gpus))
        reasons = failing(rows, fail_on, lacks_device=lacks, baseline=saved.baseline)
        failures = {name: f"{reason.status}: {reason.detail}" for reason in reasons for name in reason.names}
        for row in rows:
            case = Case(point, row["implementation"])
            samples_s = tuple(value for each in records.get(case, ()) for value in each.samples.values_s)
            held[case.name] = Measured(row, samples_s, failures.get(case.implementation, ""))
    return held


@pytest.mark.filterwarnings("ignore:Benchmark fixture was not used")
def test_case(request: pytest.FixtureRequest, point: str, implementation: str, benchmark: Any) -> None:
    """A case that is ok has its samples as rounds; one that fails the run fails; others are skipped."""
    measured = request.config.stash[HELD].get(f"{point}-{implementation}")
    if measured is None:
        pytest.skip("not measured yet")
    if measured.failure:
        pytest.fail(measured.failure, pytrace=False)
    if measured.row["status"] != "ok":
        pytest.skip(f"{measured.row['status']}: {measured.row['detail']}")
    benchmark.extra_info.update({name: measured.row[name] for name in (*CASE_COLUMNS, *SHOWN)})
    benchmark.pedantic(lambda: None, rounds=len(measured.samples_s))
