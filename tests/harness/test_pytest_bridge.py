"""The contract with the installed pytest-benchmark: what it gets from us comes out of it."""

import json
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import bench.harness.pytest_bridge  # noqa: F401 - loaded once: a suite inside this process forgets what it loads itself
from bench.analyse.summary import of_records
from bench.plan.case import Case
from bench.store.record import Record
from tests.make.points import point
from tests.make.records import record, samples

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

SUITE = """
from bench.analyse.summary import of_records
from bench.harness.pytest_bridge import hand_over
from tests.harness.test_pytest_bridge import measured

def test_sweep(benchmark):
    records = measured(sdpa_s=6e-3)
    hand_over(benchmark, records, of_records(records, "eager").all_rows())
"""


def measured(sdpa_s: float) -> list[Record]:
    """Return what two processes measured of three implementations at a point, of which one is unsupported."""
    times = {"eager": (3e-3, 1e-3, 2e-3), "sdpa": (0.9 * sdpa_s, sdpa_s, 1.1 * sdpa_s)}
    records = [
        record(case=Case(point(), name), process=process, samples=samples(*values), calls_per_timing=5)
        for process in range(2)
        for name, values in times.items()
    ]
    return [*records, record(case=Case(point(), "mha"), status="unsupported", samples=samples())]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a suite that hands two rows over."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    pytester.makepyfile(test_sweep=SUITE)
    return pytester


def test_every_row_has_a_name_a_group_and_its_samples(suite: pytest.Pytester) -> None:
    """Two implementations of one point are two benchmarks with their own samples, parameters and exact medians.

    pytest-benchmark's own table lists both; `pytest-benchmark compare` shows the rows of two files, as tables and CSV.
    """
    done = suite.runpytest_inprocess("--benchmark-json=out.json")
    assert done.ret == 0
    group = point().name
    done.stdout.fnmatch_lines([f"*benchmark '{group}': 2 tests*", "*test_sweep[[]eager-vit*", "*sdpa-vit*"])
    benchmarks = json.loads((suite.path / "out.json").read_text())["benchmarks"]
    rows = {row["implementation"]: row for row in of_records(measured(6e-3), "eager").all_rows()}
    for entry, name in zip(benchmarks, ("eager", "sdpa"), strict=True):
        assert entry["name"] == f"test_sweep[{name}-{group}]"
        assert entry["fullname"].endswith(f"test_sweep.py::test_sweep[{name}-{group}]")
        assert entry["group"] == group
        assert (entry["params"]["num_tokens"], entry["params"]["implementation"]) == (7, name)
        assert entry["extra_info"]["speedup"] == rows[name]["speedup"]
        assert entry["stats"]["median"] == rows[name]["latency_s"]
        assert entry["stats"]["iterations"] == 5
    assert benchmarks[0]["stats"]["data"] == [3e-3, 1e-3, 2e-3] * 2
    shutil.copy(suite.path / "out.json", suite.path / "again.json")
    for options in (["--csv", "out.csv"], *([["--between", "median"]] if has_between() else [])):
        shown = suite.run(sys.executable, "-m", "pytest_benchmark", "compare", "out.json", "again.json", *options)
        said = shown.stdout.str() + shown.stderr.str()
        assert (shown.ret, "eager-vit" in said, "sdpa-vit" in said) == (0, True, True), options


def has_between() -> bool:
    """Return whether the installed pytest-benchmark has --between, which came with 5.3."""
    return tuple(int(part) for part in version("pytest-benchmark").split(".")[:2]) >= (5, 3)


def test_disabled_it_gets_nothing_and_the_test_passes(suite: pytest.Pytester) -> None:
    """With --benchmark-disable no row is added, and nothing fails."""
    done = suite.runpytest_inprocess("--benchmark-disable")
    done.assert_outcomes(passed=1)
    assert "eager-vit" not in done.stdout.str()


def test_a_row_that_became_slower_fails_its_comparison(suite: pytest.Pytester) -> None:
    """--benchmark-compare finds each saved row by its name, judges the medians that we gave, and fails if one grew."""
    compared = ("--benchmark-compare", "--benchmark-compare-fail=median:5%")
    assert suite.runpytest_inprocess("--benchmark-autosave").ret == 0
    same = suite.runpytest_inprocess(*compared)
    assert same.ret == 0
    same.stdout.fnmatch_lines(["*eager-vit*NOW*"])
    suite.makepyfile(test_sweep=SUITE.replace("6e-3", "6.6e-3"))
    slower = suite.runpytest_inprocess(*compared)
    assert slower.ret != 0
    slower.stderr.fnmatch_lines(["*Performance has regressed*", "*sdpa-vit*median*"])
