"""Ratios to another implementation, paired anew: only processes that measured both say anything."""

import math
from collections.abc import Sequence

import pandas as pd
import pytest

from bench.analyse.comparison import common_implementations, compare
from bench.analyse.summary import summarise
from bench.show.rows import Row, plain
from bench.store.record import Record
from tests.examples import record, timed

TIMES = {"eager": 1.0, "sdpa": 0.5, "mha": 0.8}


def test_ratios_refer_to_the_new_baseline() -> None:
    """With sdpa twice as fast as eager, eager is half as fast as sdpa."""
    speedups = {name: row["speedup"] for name, row in by_name(summarise(run(), "sdpa")).items()}
    assert speedups == pytest.approx({"eager": 0.5, "sdpa": 1.0, "mha": 0.625}, rel=1e-3)


def test_ratios_are_paired_within_processes() -> None:
    """A process in which everything takes twice as long moves no ratio, and adds no scatter."""
    plain, found = (by_name(summarise(records, "sdpa"))["mha"] for records in (run(), run(disturbed={1: 2.0})))
    assert found["speedup"] == pytest.approx(0.625, rel=1e-3)
    assert found["log_ratio_error"] == pytest.approx(plain["log_ratio_error"])


def test_a_change_of_the_baseline_is_told_by_the_new_baseline() -> None:
    """Eager became a fifth faster: by eager all others got slower, by sdpa eager got faster and nothing else."""
    base, new = run(), run({**TIMES, "eager": 0.8})
    by_eager = verdicts(compare(summarise(base, "eager"), summarise(new, "eager")))
    by_sdpa = verdicts(compare(summarise(base, "sdpa"), summarise(new, "sdpa")))
    assert by_eager == {"eager": "baseline", "sdpa": "slower", "mha": "slower"}
    assert by_sdpa == {"eager": "faster", "sdpa": "baseline", "mha": "equivalent"}


def test_all_processes_count_beside_the_new_baseline_or_not() -> None:
    """An implementation that was added later met eager again, and sdpa in two of its five processes only."""
    first = run({"eager": 1.0, "sdpa": 0.5}, processes=range(5))
    added = run({"eager": 1.0, "mha": 0.8}, processes=range(3, 8))
    records = [*first, *(one for one in added if one.case.implementation == "mha" or one.process > 4)]
    found = by_name(summarise(records, "sdpa"))
    assert found["mha"]["processes"] == 5
    assert found["mha"]["speedup"] == pytest.approx(0.5 / 0.8, rel=1e-3)
    assert found["eager"]["processes"] == 8


def test_a_case_that_never_met_the_new_baseline_has_no_ratio() -> None:
    """It stays a row, because it was measured, and is judged by nothing."""
    records = [*run({"eager": 1.0, "sdpa": 0.5}), *run({"mha": 0.8}, processes=range(10, 13))]
    found = by_name(summarise(records, "sdpa"))
    assert found["mha"]["status"] == "ok"
    assert found["mha"]["speedup"] is None


def test_a_failure_apart_from_the_new_baseline_is_a_failure() -> None:
    """What failed in one process is not ok, wherever the new baseline was."""
    crash = record("mha", process=7, status="error")
    found = by_name(summarise([*run(), crash], "sdpa"))
    assert found["mha"]["status"] == "error"


def test_common_implementations_are_what_both_runs_measured() -> None:
    """In the order of BASE; what failed everywhere on a side is no baseline."""
    base = [*run(), *run({"flex": 1.0, "online": 1.0})]
    new = [*run(), record("flex", status="oom")]
    assert common_implementations(base, new) == ["eager", "sdpa", "mha"]


def run(
    times: dict[str, float] | None = None,
    processes: Sequence[int] = range(5),
    disturbed: dict[int, float] | None = None,
) -> list[Record]:
    """Return the records of a run in which each implementation takes its time, give or take a tenth of a percent."""
    return [
        measured(name, process, value * (disturbed or {}).get(process, 1.0))
        for process in processes
        for name, value in (times or TIMES).items()
    ]


def measured(name: str, process: int, value_s: float) -> Record:
    """Return a record of two rounds."""
    value_s *= math.exp(1e-4 * math.sin(len(name) + 2.4 * process))
    return record(name, process=process, samples=timed(value_s, value_s), calls_per_timing=1)


def by_name(table: pd.DataFrame) -> dict[str, Row]:
    """Return the rows by their implementation."""
    return {row["implementation"]: row for row in plain(table)}


def verdicts(comparison: pd.DataFrame) -> dict[str, str]:
    """Return the verdict of each implementation."""
    return {name: row["verdict"] for name, row in by_name(comparison).items()}
