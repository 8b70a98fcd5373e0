"""`pytest bench`: the same run as by `python -m bench run`, and a test of pytest-benchmark for each case."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.plan.case import CONTROL

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]

SHAPE = ["--num-tokens", "5", "--channels", "12", "--num-heads", "2", "--batch", "2"]
ASKED = [*SHAPE, "--impl", "eager,sdpa,flash_attn,mine:attend"]
EFFORT = ["--no-race", "--processes", "1", "--budget-s", "0.05"]


def pytest_bench(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `pytest bench` in a folder."""
    command = [sys.executable, "-m", "pytest", str(ROOT / "bench"), *ASKED, *words]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_each_case_is_a_test_whose_rounds_are_its_samples(tmp_path: Path) -> None:
    """The file of pytest-benchmark holds the journal's samples, and its own command reads it.

    A wrong kernel of the user's own fails, and what can't run here is skipped. A finished run has the same tests, and
    measures nothing.
    """
    (tmp_path / "mine.py").write_text("def attend(q, k, v, scale):\n    return q\n")
    done = pytest_bench(tmp_path, *EFFORT, "--run", "run", "--benchmark-json", "F", "--junitxml", "J")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "1 failed, 2 passed, 1 skipped" in done.stdout
    assert "incorrect: output" in done.stdout

    saved = AnalysedRun(tmp_path / "run")
    samples_s = {
        record.case.implementation: [*record.samples.values_s]
        for record in saved.records
        if record.status == "ok" and record.case.implementation != CONTROL
    }
    benchmarks = json.loads((tmp_path / "F").read_text())["benchmarks"]
    assert {each["params"]["implementation"]: each["stats"]["data"] for each in benchmarks} == samples_s
    latencies_s = saved.table.set_index("implementation")["latency_s"]
    assert all(each["extra_info"]["latency_s"] == latencies_s[each["params"]["implementation"]] for each in benchmarks)
    tests = {case.get("name", ""): [each.tag for each in case] for case in ET.parse(tmp_path / "J").iter("testcase")}  # noqa: S314
    assert sorted(tests.values()) == [[], [], ["failure"], ["skipped"]]

    compare = [sys.executable, "-m", "pytest_benchmark", "compare", str(tmp_path / "F")]
    compared = subprocess.run(compare, capture_output=True, text=True, check=True)
    assert "n5-c12-h2-t1-sdpa" in compared.stdout

    before = (tmp_path / "run" / "journal.jsonl").read_bytes()
    again = pytest_bench(tmp_path, *EFFORT, "--run", "run", "-k", "sdpa")
    assert again.returncode == pytest.ExitCode.OK, again.stdout + again.stderr
    assert "1 passed, 3 deselected" in again.stdout
    assert (tmp_path / "run" / "journal.jsonl").read_bytes() == before


@pytest.mark.parametrize("option", ["--collect-only", "--list"])
def test_cases_are_listed_without_measuring(tmp_path: Path, option: str) -> None:
    """Points times implementations, and no folder."""
    (tmp_path / "mine.py").write_text("def attend(q, k, v, scale):\n    return q\n")
    done = pytest_bench(tmp_path, option, "-q", "--num-heads", "1,2")
    assert done.returncode == pytest.ExitCode.OK
    assert sum("test_case[" in line for line in done.stdout.splitlines()) == 2 * 4
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "message"), [(["--impl", "sdap"], "unknown implementation 'sdap'"), (["-n", "2"], "-n must be left out")]
)
def test_a_wrong_request_has_the_status_of_pytest(tmp_path: Path, words: list[str], message: str) -> None:
    """It is a line as for `run`; processes of pytest-xdist would measure beside each other."""
    done = pytest_bench(tmp_path, *words)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {message}" in done.stderr
    assert not (tmp_path / "results").exists()
