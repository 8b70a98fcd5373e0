"""`pytest bench`: the same run as by `python -m bench run`, and a test of pytest-benchmark for each case."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.rows import plain
from bench.commands import run as bench_run
from bench.plan.case import CONTROL
from bench.plan.statuses import INTERRUPTED
from bench.store.journal import JOURNAL

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]

SHAPE = ["--channels", "12", "--num-heads", "2", "--batch", "2"]
ASKED = [str(ROOT / "bench"), *SHAPE, "--no-race", "--processes", "1", "--budget-s", "0.05"]
RUN = ["--num-tokens", "5,7", "--impl", "eager,sdpa,test:wrong,test:outgrows", "--fail-on", "incorrect", "--run", "run"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of two points by workers that make their times up, with what pytest wrote of it."""
    folder = tmp_path_factory.mktemp("cases")
    plugins = ["-p", "tests.scripted", "-p", "no:hypothesispytest"]
    files = ["--benchmark-json", "F", "--junitxml", "J"]
    command = [sys.executable, "-m", "pytest", *plugins, *ASKED, *RUN, *files]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "2 failed, 5 passed, 1 skipped" in done.stdout
    assert "incorrect: wrong numbers" in done.stdout
    return folder


def test_each_case_is_a_test_whose_rounds_are_its_samples(run: Path) -> None:
    """The file of pytest-benchmark holds the journal's samples; wrong cases fail, cases without memory are skipped."""
    saved = AnalysedRun(run / "run")
    samples_s: dict[str, list[float]] = {}
    for record in saved.records:
        if record.status == "ok" and record.case.implementation != CONTROL:
            samples_s.setdefault(record.case.name, []).extend(record.samples.values_s)
    benchmarks = {
        f"{each['params']['point']}-{each['params']['implementation']}": each
        for each in json.loads((run / "F").read_text())["benchmarks"]
    }
    assert {name: each["stats"]["data"] for name, each in benchmarks.items()} == samples_s
    latencies_s = {f"{row['point']}-{row['implementation']}": row["latency_s"] for row in plain(saved.table)}
    assert all(each["extra_info"]["latency_s"] == latencies_s[name] for name, each in benchmarks.items())
    ends = [tuple(each.tag for each in case) for case in ET.parse(run / "J").iter("testcase")]  # noqa: S314
    assert sorted(ends) == [()] * 5 + [("failure",)] * 2 + [("skipped",)]


def bench(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run `pytest bench` in a folder, inside this process, and return its status."""
    monkeypatch.chdir(folder)
    return int(pytest.main([*ASKED, "-p", "no:cacheprovider", *words]))


def test_a_finished_run_has_the_same_tests_and_measures_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some of its cases may be asked for by a part of their names."""
    before = (run / "run" / JOURNAL).read_bytes()
    assert bench(run, monkeypatch, *RUN, "-k", "sdpa") == pytest.ExitCode.OK
    assert "2 passed, 6 deselected" in capsys.readouterr().out
    assert (run / "run" / JOURNAL).read_bytes() == before


@pytest.mark.parametrize("option", ["--collect-only", "--list"])
def test_cases_are_listed_without_measuring(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Points times implementations, and no folder."""
    assert bench(tmp_path, monkeypatch, option, "-q", "--num-tokens", "5,7", "--impl", "sdpa") == pytest.ExitCode.OK
    assert capsys.readouterr().out.count("test_case[") == 2 * 2
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "message"), [(["--impl", "sdap"], "unknown implementation 'sdap'"), (["-n", "2"], "-n must be left out")]
)
def test_a_wrong_request_has_the_status_of_pytest(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is a line as for `run`; processes of pytest-xdist would measure beside each other."""
    assert bench(tmp_path, monkeypatch, *words) == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {message}" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_run_that_was_interrupted_ends_as_pytest_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No case is a test then."""
    monkeypatch.setattr(bench_run, "measured", lambda *_: (INTERRUPTED, tmp_path))
    assert bench(tmp_path, monkeypatch) == pytest.ExitCode.INTERRUPTED
