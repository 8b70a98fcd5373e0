"""The only module that uses private parts of pytest-benchmark: it adds samples that workers measured.

pytest-benchmark has no public way to add a row that it did not time itself.
The module uses BenchmarkFixture's `_mode` and `_make_stats`, Metadata's `stats`, and the cached properties of Stats.
`tests/harness/test_pytest_bridge.py` checks that the installed version has them.
"""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_benchmark.fixture import BenchmarkFixture

if TYPE_CHECKING:  # they bring pandas, which is slow to import
    from bench.analyse.rows import Row
    from bench.store.record import Record

SHOWN_BY = (
    "benchmark_verbose",
    "benchmark_columns",
    "benchmark_compare",
    "benchmark_compare_fail",
    "benchmark_histogram",
)
"""Options of pytest-benchmark that need its table."""

EXTRA_INFO = ("speedup", "speedup_low", "speedup_high", "peak_bytes")


def quiet_unless_asked(config: Any) -> None:
    """Print pytest-benchmark's table only if one of its options is given: the sweep prints its own."""
    if not any(getattr(config.option, name, None) for name in SHOWN_BY):
        config.option.benchmark_quiet = True


def hand_over(benchmark: BenchmarkFixture, records: "Sequence[Record]", rows: "Sequence[Row]") -> None:
    """Add a row for each case of a point that is ok to pytest-benchmark's session, unless it is disabled."""
    benchmark._mode = "attention-bench"
    if benchmark.disabled:
        return
    for row in rows:
        if row["status"] == "ok":
            _add(benchmark, [record for record in records if record.case.implementation == row["implementation"]], row)


def _add(benchmark: BenchmarkFixture, records: "Sequence[Record]", row: "Row") -> None:
    """Add the samples of a case, with the median of its row of results."""
    case, own = records[0].case, copy.copy(benchmark)
    path, own.param = benchmark.fullname.partition("[")[0], f"{case.implementation}-{case.point.name}"
    own.name, own.fullname = f"{path.rpartition('::')[2]}[{own.param}]", f"{path}[{own.param}]"
    own.group, own.params = case.point.name, case.columns()
    own.extra_info = {name: row[name] and float(row[name]) for name in EXTRA_INFO}
    stats = own._make_stats(int(row["calls_per_timing"])).stats
    for record in records:
        for value_s in record.samples.values_s:
            stats.update(value_s)
    stats.__dict__["median"] = float(row["latency_s"])  # over processes, as in results.csv, not that of the pool
