"""The only module that uses private parts of pytest-benchmark: it adds samples that workers measured.

pytest-benchmark has no public way to add a row that it did not time itself.
The module uses BenchmarkFixture's `_mode` and `_make_stats`, Metadata's `stats`, and the cached properties of Stats.
`tests/harness/test_pytest_bridge.py` checks that the installed version has them.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_benchmark.fixture import BenchmarkFixture

from bench.store.record import Record
from bench.store.units import is_missing

if TYPE_CHECKING:
    import pandas as pd

SHOWN_BY = (
    "benchmark_verbose",
    "benchmark_columns",
    "benchmark_compare",
    "benchmark_compare_fail",
    "benchmark_histogram",
)
"""Options of pytest-benchmark that need its table."""

EXTRA_INFO = ("speedup", "speedup_low", "speedup_high", "peak_bytes")


@dataclass(frozen=True)
class BenchmarkRow:
    """One row for pytest-benchmark: seconds per call of each sample, and the latency in the results."""

    name: str
    group: str
    params: dict[str, Any]
    values_s: Sequence[float]
    median_s: float
    calls_per_timing: int
    extra_info: dict[str, Any]


def samples(records: Sequence[Record], rows: "pd.DataFrame") -> list[BenchmarkRow]:
    """Return a row of samples for each case of a point that is ok."""
    return [
        _samples([record for record in records if record.case.implementation == row["implementation"]], row)
        for _, row in rows[rows["status"] == "ok"].iterrows()
    ]


def hand_over(benchmark: BenchmarkFixture, rows: Sequence[BenchmarkRow]) -> None:
    """Add one row for each implementation to pytest-benchmark's session, unless it is disabled."""
    benchmark._mode = "attention-bench"
    if benchmark.disabled:
        return
    for row in rows:
        _add(benchmark, row)


def quiet_unless_asked(config: Any) -> None:
    """Print pytest-benchmark's table only if one of its options is given: the sweep prints its own."""
    if not any(getattr(config.option, name, None) for name in SHOWN_BY):
        config.option.benchmark_quiet = True


def _samples(records: Sequence[Record], row: "pd.Series[Any]") -> BenchmarkRow:
    case = records[0].case
    return BenchmarkRow(
        name=f"{row['implementation']}-{case.point.name}",
        group=case.point.name,
        params=case.columns(),
        values_s=[value for record in records for value in record.samples.values_s],
        median_s=float(row["latency_s"]),
        calls_per_timing=int(row["calls_per_timing"]),
        extra_info={name: None if is_missing(row[name]) else float(row[name]) for name in EXTRA_INFO},
    )


def _add(benchmark: BenchmarkFixture, row: BenchmarkRow) -> None:
    own = copy.copy(benchmark)
    path = benchmark.fullname.partition("[")[0]
    own.name = f"{path.rpartition('::')[2]}[{row.name}]"
    own.fullname = f"{path}[{row.name}]"
    own.group, own.param, own.params = row.group, row.name, row.params
    own.extra_info = row.extra_info
    stats = own._make_stats(row.calls_per_timing).stats
    for value_s in row.values_s:
        stats.update(value_s)
    stats.__dict__["median"] = row.median_s  # the median over processes, as in results.csv, not that of the pool
