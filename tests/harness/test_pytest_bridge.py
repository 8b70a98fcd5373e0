"""The contract with the installed pytest-benchmark: what it gets from us comes out of it."""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import bench.harness.pytest_bridge  # noqa: F401 - loaded once: a suite inside this process forgets what it loads itself

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

SUITE = """
from bench.harness.pytest_bridge import BenchmarkRow, hand_over

def test_sweep(benchmark):
    rows = [
        BenchmarkRow(name, "point", {"num_tokens": 7}, values, median, 5, {"speedup": 1.5})
        for name, values, median in [
            ("eager-point", [3e-3, 1e-3, 2e-3], 0.1 + 0.2),
            ("sdpa-point", [5e-3, 6e-3, 7e-3], 6e-3),
        ]
    ]
    hand_over(benchmark, rows)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a suite that hands two rows over."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    pytester.makepyfile(test_sweep=SUITE)
    return pytester


def measured(suite: pytest.Pytester, *options: str) -> list[dict[str, Any]]:
    """Return the benchmarks of the JSON that pytest-benchmark wrote."""
    done = suite.runpytest_inprocess("--benchmark-json=out.json", *options)
    assert done.ret == 0
    benchmarks: list[dict[str, Any]] = json.loads((suite.path / "out.json").read_text())["benchmarks"]
    return benchmarks


def test_every_row_has_a_name_a_group_and_its_samples(suite: pytest.Pytester) -> None:
    """Two implementations of one point are two benchmarks with their own samples, parameters and exact medians."""
    first, second = measured(suite)
    assert (first["name"], second["name"]) == ("test_sweep[eager-point]", "test_sweep[sdpa-point]")
    assert first["fullname"].endswith("test_sweep.py::test_sweep[eager-point]")
    assert first["group"] == "point"
    assert first["params"] == {"num_tokens": 7}
    assert first["extra_info"] == {"speedup": 1.5}
    assert first["stats"]["data"] == [3e-3, 1e-3, 2e-3]
    assert first["stats"]["iterations"] == 5
    assert (first["stats"]["median"], second["stats"]["median"]) == (0.1 + 0.2, 6e-3)


def test_its_table_shows_the_rows(suite: pytest.Pytester) -> None:
    """pytest-benchmark's own table lists both rows in the group."""
    done = suite.runpytest_inprocess()
    done.stdout.fnmatch_lines(["*benchmark 'point': 2 tests*", "*test_sweep[[]eager-point[]]*", "*sdpa-point*"])


def test_disabled_it_gets_nothing_and_the_test_passes(suite: pytest.Pytester) -> None:
    """With --benchmark-disable no row is added, and nothing fails."""
    done = suite.runpytest_inprocess("--benchmark-disable")
    done.assert_outcomes(passed=1)
    assert "eager-point" not in done.stdout.str()


def test_a_row_that_became_slower_fails_its_comparison(suite: pytest.Pytester) -> None:
    """--benchmark-compare finds each saved row by its name, judges the medians that we gave, and fails if one grew."""
    compared = ("--benchmark-compare", "--benchmark-compare-fail=median:5%")
    assert suite.runpytest_inprocess("--benchmark-autosave").ret == 0
    same = suite.runpytest_inprocess(*compared)
    assert same.ret == 0
    same.stdout.fnmatch_lines(["*eager-point*NOW*"])
    suite.makepyfile(test_sweep=SUITE.replace("6e-3),", "6.6e-3),"))
    slower = suite.runpytest_inprocess(*compared)
    assert slower.ret != 0
    slower.stderr.fnmatch_lines(["*Performance has regressed*", "*sdpa-point*median*"])


def test_its_own_command_reads_saved_files(suite: pytest.Pytester) -> None:
    """`pytest-benchmark compare` shows the rows of two files beside each other: as tables, and as CSV."""
    for name in ("base.json", "new.json"):
        assert suite.runpytest_inprocess(f"--benchmark-json={name}").ret == 0
    for options in ([], ["--csv", "out.csv"], *([["--between", "median"]] if has_between() else [])):
        done = suite.run(sys.executable, "-m", "pytest_benchmark", "compare", "base.json", "new.json", *options)
        said = done.stdout.str() + done.stderr.str()
        assert (done.ret, "eager-point" in said, "sdpa-point" in said) == (0, True, True), options


def has_between() -> bool:
    """Return whether the installed pytest-benchmark knows --between, which came with 5.3."""
    return tuple(int(part) for part in version("pytest-benchmark").split(".")[:2]) >= (5, 3)
