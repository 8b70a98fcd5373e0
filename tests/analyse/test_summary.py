"""One row per case combines its processes."""

import dataclasses
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.analyse.summary import Summary
from bench.plan.case import CONTROL, Point
from bench.store.record import STATUSES, Record, Samples
from bench.store.table import COLUMNS
from tests.make.records import ORIGIN, case, record, samples
from tests.make.results import of_records, summarise

T_995 = {1: 63.657, 2: 9.925}
"""The 99.5 % points of Student's t by degrees of freedom, as printed in tables."""

STANDING = ["rank", "standing", "slowdown", "slowdown_low", "slowdown_high"]


def measured(
    implementation: str, process: int, values_s: list[float] | None = None, of: Samples | None = None, **changes: Any
) -> Record:
    """Return the record of a process that measured these values, one second where none are given."""
    return record(implementation, process=process, samples=of or samples(*(values_s or [1.0])), **changes)


def only(*records: Record) -> "pd.Series[Any]":
    """Return the one row of records of one case."""
    table = summarise(records, "eager")
    assert len(table) == 1
    return table.iloc[0]


def by_name(*records: Record, baseline: str = "eager") -> pd.DataFrame:
    """Return the rows of records of one point under their implementations."""
    table = summarise(records, baseline)
    assert table["implementation"].is_unique
    return table.set_index("implementation")


def row_of(name: str, *records: Record) -> "pd.Series[Any]":
    """Return the row of an implementation among records of one point."""
    table = by_name(*records)
    return table[table.index == name].iloc[0]


# rows


def test_rows_have_the_columns_of_the_store() -> None:
    """The table is as results.csv has it, also where nothing was measured; where all agree why, they say it once."""
    records = [record(process=n, status="unsupported", detail="no CUDA", samples=Samples()) for n in range(3)]
    table = summarise(records, "eager")
    assert {str(name): str(kind) for name, kind in table.dtypes.items()} == COLUMNS
    assert (only(*records)["status"], only(*records)["detail"]) == ("unsupported", "no CUDA")


def test_latency_is_the_median_over_processes_of_the_median_over_samples() -> None:
    """Medians of 2 s and a tenth more and less: their logarithms scatter by ln 1.1, a median 1.25 times as a mean."""
    row = only(
        measured("eager", 0, [2 / 1.1, 2 / 1.1, 2 / 1.1, 2 / 1.1, 2 / 1.1]),
        measured("eager", 1, [0.5, 2.0, 100.0]),
        measured("eager", 2, [2.2]),
    )
    half = T_995[2] * math.log(1.1) / math.sqrt(3) * 1.2533
    assert row[["latency_s", "latency_min_s", "rounds"]].tolist() == [2.0, 0.5, 9]
    ends = (2 / math.exp(half), 2 * math.exp(half))
    assert (row["latency_low_s"], row["latency_high_s"]) == pytest.approx(ends, rel=1e-3)


def test_one_process_has_a_latency_and_no_interval() -> None:
    """Of the timings of a sample the shortest counts, because a delay can only add; what doesn't apply is missing."""
    disturbed = Samples((0, 1), ((3.0, 9.0, 4.0), (5.0, 3.0, 8.0)), (0, 0), (0, 0))
    row = only(measured("eager", 0, of=disturbed, kernels=("aten::bmm", "aten::_softmax")))
    assert row["latency_s"] == 3.0
    missing = ["latency_low_s", "latency_high_s", "detail", "compile_cold_s", "graphs", "peak_bytes"]
    assert row[missing].isna().all()
    assert row[["env_id", "torch_version"]].tolist() == [ORIGIN.env_id, ORIGIN.torch_version]
    assert row["kernels"] == "aten::bmm;aten::_softmax"


# standings


def test_the_control_has_a_ratio_and_no_rank() -> None:
    """The control is the fastest here, and the others are ranked as if it weren't there."""
    times = {"eager": 2.0, "sdpa": 1.0, CONTROL: 0.5}
    table = by_name(*(measured(name, n, [value + n / 100]) for n in range(3) for name, value in times.items()))
    assert table["speedup"][CONTROL] == pytest.approx(4.0, rel=0.05)
    assert table.loc[CONTROL, STANDING].isna().all()
    assert table["rank"][["sdpa", "eager"]].tolist() == [1, 2]


def test_what_failed_and_what_is_alone_has_no_standing() -> None:
    """A failure has no rank; the only one that is ok has the first, and no rival to stand against."""
    failed = record(status="oom", samples=Samples())
    table = by_name(failed, measured("sdpa", 0), measured("sdpa", 1))
    assert (table["rank"]["sdpa"], pd.isna(table["standing"]["sdpa"])) == (1, True)
    assert table.loc["eager", STANDING].isna().all()


def test_what_nothing_joins_comes_last_by_its_time_and_without_a_standing() -> None:
    """Replicates of other rounds say nothing of the rest, though their numbers are the same and their times short."""
    times = {"eager": (2.0, 1), "sdpa": (1.0, 1), "flex": (0.5, 2), "mha": (0.3, 3)}
    records = [measured(name, n, [value], seed=seed) for n in range(3) for name, (value, seed) in times.items()]
    table = summarise(records, "eager")
    assert table["rank"].tolist() == [2, 1, 4, 3]
    expected = [[True] * 3] * 2 + [[False] * 3] * 2
    assert table[["standing", "slowdown_high", "speedup_low"]].notna().to_numpy().tolist() == expected


# samples and metrics


@pytest.mark.parametrize(
    ("samples", "flagged", "of_two_threads"),
    [
        ([samples(1.0, 1.0, switches=(0, 40)), samples(0.01, 1.0, 1.0, switches=(1, 1, 0))], 0.4, 0.2),
        ([Samples((0, 1, 2, 3), ((0.01,) * 3,) * 4, switches=(0, 1, 2, 3), others=(0,) * 4)], 0.25, 0.25),
        ([Samples((0, 1, 2), ((1.0,),) * 3, (0,) * 3, others=(0.5, 0.1, 1.0))], 2 / 3, 2 / 3),
    ],
    ids=["switches", "timings", "others"],
)
def test_a_sample_is_flagged_that_was_disturbed(samples: list[Samples], flagged: float, of_two_threads: float) -> None:
    """More than twenty switches a second of each thread are a neighbour, and so is half a core in use.

    Of three timings the least counts: two switches leave one of them undisturbed, three may not. None of that moves the
    time of a GPU.
    """
    records = [measured("eager", process, of=of, calls_per_timing=1) for process, of in enumerate(samples)]
    assert only(*records)["flagged_share"] == pytest.approx(flagged)
    of_two = [dataclasses.replace(each, case=case("eager", threads=2)) for each in records]
    assert only(*of_two)["flagged_share"] == pytest.approx(of_two_threads)
    of_gpu = [dataclasses.replace(each, case=case("eager", device="cuda", timing="device-hot")) for each in records]
    assert only(*of_gpu)["flagged_share"] == 0


@pytest.mark.parametrize(
    ("seconds", "cached"),
    [((17.0, 9.0, 2.0, 3.0), (False, True, True, True)), ((2.0, 17.0, 4.0), (True, False, True))],
    ids=["first", "after a death"],
)
def test_cold_compilation_is_the_first_without_the_cache(seconds: Any, cached: Any) -> None:
    """Unless the first process got the graph from the cache, as after a death: the one that compiled it is cold."""
    records = [
        measured("sdpa", number, compile_s=value, compile_cached=hit)
        for number, (value, hit) in enumerate(zip(seconds, cached, strict=True))
    ]
    assert only(*records)["compile_cold_s"] == 17.0


# speed-ups


def test_speedup_is_the_geometric_mean_of_the_ratios_within_processes() -> None:
    """Ratios of 4/1.01 and 4*1.01 in two processes give 4, although the machine's speed changed in between."""
    times = [("eager", 0, 4.0), ("sdpa", 0, 1.01), ("eager", 1, 40.4), ("sdpa", 1, 10.0)]
    row = row_of("sdpa", *(measured(name, n, [value] * 2) for name, n, value in times))
    factor = 1.01 ** T_995[1]  # the error is sd / √2, with sd = ln 1.01² / √2
    assert row["speedup"] == pytest.approx(4.0)
    assert (row["log_ratio_error"], row["log_ratio_freedom"]) == (pytest.approx(math.log(1.01)), 1)
    assert (row["speedup_low"], row["speedup_high"]) == pytest.approx((4.0 / factor, 4.0 * factor), rel=1e-3)


def test_two_processes_that_differ_wildly_have_no_interval() -> None:
    """An interval that reaches beyond three times its value tells nothing of a ratio, of a bound or of a latency."""
    times = [("eager", 0, 2.0), ("sdpa", 0, 1.0), ("eager", 1, 80.0), ("sdpa", 1, 10.0)]
    row = row_of("sdpa", *(measured(name, n, [value] * 2) for name, n, value in times))
    assert (row["speedup"], row["slowdown"]) == (pytest.approx(4.0), 1.0)
    assert row[["speedup_low", "speedup_high", "slowdown_high", "latency_low_s", "latency_high_s"]].isna().all()


def test_a_latency_s_interval_has_room_for_the_processes_that_it_comes_from() -> None:
    """A point that scatters by 10 % in a run whose others scatter by 0.1 % doesn't borrow their calm."""
    calm = [one for tokens in range(2, 30) for one in noisy(tokens, sd=0.001)]
    two = [
        measured("eager", process, [value], case=case("eager", num_tokens=1))
        for process, value in enumerate((1.0, 1.1))
    ]
    row = summarise([*two, *calm], "eager").iloc[0]
    assert row["latency_low_s"] <= 1.0 < 1.1 <= row["latency_high_s"]


def test_speedup_pairs_the_rounds_and_not_the_places() -> None:
    """The machine slows by ten in later rounds; sdpa left after two of them, and is still twice as fast."""
    eager = measured("eager", 0, of=samples(2.0, 20.0, 200.0, 2000.0, rounds=(0, 1, 2, 3)))
    table = by_name(eager, measured("sdpa", 0, of=samples(100.0, 10.0, rounds=(2, 1))))
    assert table["speedup"]["sdpa"] == pytest.approx(2.0)


def test_a_row_is_over_all_processes_and_its_ratio_over_shared_ones() -> None:
    """The baseline has no time in the first process, so only the second says anything of their ratio."""
    table = by_name(
        measured("eager", 1, [2.0]), *(measured("sdpa", n, [time_s]) for n, time_s in enumerate((9.0, 1.0)))
    )
    assert table["processes"].to_dict() == {"eager": 1, "sdpa": 2}
    assert table["latency_s"].to_dict() == {"eager": 2.0, "sdpa": 5.0}
    assert table["speedup"].to_dict() == pytest.approx({"eager": 1.0, "sdpa": 2.0})


def test_baseline_has_the_speedup_one_without_scatter() -> None:
    """The baseline's own row is 1 exactly; another baseline turns the ratios round."""
    row = row_of("eager", *(measured(name, process) for name in ("eager", "sdpa") for process in range(2)))
    assert row[["speedup", "speedup_low", "speedup_high", "log_ratio_error"]].tolist() == [1, 1, 1, 0]
    table = by_name(measured("eager", 0, [4.0]), measured("sdpa", 0, [1.0]), baseline="sdpa")
    assert table["speedup"]["eager"] == pytest.approx(0.25)


def test_without_a_whole_baseline_rows_keep_their_latency_and_have_no_speedup() -> None:
    """A baseline that failed in any process, or that wasn't measured, is nothing to refer to."""
    fallen = [record("eager", process=1, status="crashed", samples=Samples())]
    for baseline in (fallen, [measured("eager", 0), *fallen], []):
        row = row_of("sdpa", measured("sdpa", 0), measured("sdpa", 1), *baseline)
        assert row[["status", "latency_s"]].tolist() == ["ok", 1.0]
        assert row[["speedup", "speedup_low", "speedup_high", "log_ratio_error"]].isna().all()


# failures


@pytest.mark.parametrize("good", [1, 2])
@pytest.mark.parametrize("status", STATUSES[1:])
def test_what_was_measured_before_a_process_died_counts(status: str, good: int) -> None:
    """The row has the times of two processes, and says how the third ended; a wrong output takes all of them.

    One process alone counts for nothing, and what another implementation measured stays.
    """
    failed = record("sdpa", process=good, status=status, detail="why", samples=Samples())
    before = [measured("sdpa", number) for number in range(good)]
    table = by_name(*(measured("eager", number) for number in range(good + 1)), *before, failed)
    row = table[table.index == "sdpa"].iloc[0]
    assert table["status"]["eager"] == "ok"
    if good == 2 and status in ("oom", "timeout", "crashed"):
        assert row[["status", "processes", "rounds", "speedup"]].tolist() == ["ok", 2, 2, 1.0]
        assert row["detail"] == f"{status} after 2 processes that succeeded: why"
    else:
        assert (row["status"], row["detail"]) == (status, f"in 1 of {good + 1} processes: why")
        assert row[["latency_s", "speedup"]].isna().all()


def test_a_failure_counts_until_its_case_was_tried_again() -> None:
    """A resumed run's measurement replaces it: the row is ok, with the processes that measured it."""
    failure = record("sdpa", process=1, status="crashed", detail="killed", samples=Samples(), own_cause=False)
    before = [*(measured("eager", number) for number in range(3)), measured("sdpa", 0), failure]
    after = [*before, measured("sdpa", 2)]
    assert by_name(*before)["status"]["sdpa"] == "crashed"
    row = row_of("sdpa", *after)
    assert (row["status"], row["processes"], pd.notna(row["speedup"])) == ("ok", 2, True)
    again = record("sdpa", process=3, status="timeout", detail="silent", samples=Samples())
    assert by_name(*after, again)["detail"]["sdpa"] == "timeout after 2 processes that succeeded: silent"


# variances that are pooled over a run


def noisy(tokens: int, sd: float = 0.02, seed: int = 0) -> list[Record]:
    """Return the records of a point at which four processes have this scatter."""
    rng = np.random.default_rng(tokens + seed)
    return [
        measured(name, process, [math.exp(rng.normal(0, sd))], case=case(name, num_tokens=tokens))
        for process in range(4)
        for name in ("eager", "sdpa", "mha")
    ]


def point_of(tokens: int) -> Point:
    """Return the point of `noisy`."""
    return case(num_tokens=tokens).point


def test_a_run_gives_its_points_degrees_of_freedom() -> None:
    """A pair in four processes has 3 alone and at most 6 with its point; among 60 such points it has more.

    The intervals of latencies hold the truth, a second, in 99 of 100 or more.
    """
    alone = of_records(noisy(1), "eager").all_rows()
    among = of_records([one for tokens in range(1, 61) for one in noisy(tokens)], "eager").all_rows()
    assert alone[1]["log_ratio_freedom"] <= 6 < among[1]["log_ratio_freedom"]
    assert alone[1]["latency_s"] == among[1]["latency_s"]
    assert alone[1]["latency_high_s"] != among[1]["latency_high_s"]
    assert np.mean([row["latency_low_s"] <= 1 <= row["latency_high_s"] for row in among]) >= 0.97


def test_the_rows_of_a_summary_are_those_of_all_its_points() -> None:
    """It holds in any order: putting a point again replaces it, and more replicates bring errors."""
    summary = Summary("eager")
    summary.put([one for one in noisy(1, seed=9) if one.process == 0])
    assert math.isnan(summary.rows(point_of(1))[1]["log_ratio_error"] or math.nan)
    summary.put(noisy(1, seed=9))
    before = summary.rows(point_of(1))[1]["log_ratio_freedom"]
    for tokens in (1, 2, 3):
        summary.put(noisy(tokens))
    summary.pool()
    assert [*summary] == [point_of(tokens) for tokens in (1, 2, 3)]
    assert point_of(4) not in summary
    every = [one for tokens in (1, 2, 3) for one in noisy(tokens)]
    assert summary.all_rows() == of_records(every, "eager").all_rows()
    assert before != summary.rows(point_of(1))[1]["log_ratio_freedom"]
