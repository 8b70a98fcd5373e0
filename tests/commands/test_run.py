"""`run` as a user calls it: options, refusals, and one sweep from end to end.

Most tests have workers that make their times up, inside this process, because importing torch takes seconds.
"""

import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

import bench.show.charts.catalogue
import bench.show.pages.run
import bench.show.summary
import bench.show.terminal.console  # each run forgets its own imports
from bench.analyse.analysed_run import AnalysedRun, load
from bench.cli import main
from bench.plan import names
from bench.plan.statuses import FINE, INTERRUPTED
from bench.show.pages.run import page
from bench.store import journal
from bench.store.profile import SUFFIX

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

STEADY = """
implementations = ["eager", "sdpa"]
processes = 2
budget_s = 0.02
race = false
[[grid]]
batch = [1, 2, 3]
num_tokens = 5
channels = 12
num_heads = 2
"""
"""Points that make no picture, and cases that are all ok, each measured twice."""


@dataclass
class Done:
    """The result of a run inside this process: its exit status, its lines on standard output, and its run folder."""

    status: int
    lines: list[str]
    folder: Path

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)

    @property
    def points(self) -> list[str]:
        """The lines of points."""
        return [line for line in self.lines if re.match(r"\[\d/\d\]", line)]


Bench = Callable[..., Done]


@pytest.fixture
def scripted(
    scripted_workers: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Bench:
    """Return `run` with workers that make their times up, and that has any implementation called `test:…`.

    It draws nothing.
    """
    monkeypatch.setattr(names, "mistake_of", lambda *_: "")
    monkeypatch.setattr(bench.show.charts.catalogue, "draw", lambda *_, **_material: [])
    monkeypatch.setattr(bench.show.pages.run, "page", lambda _: "a page that takes seconds to make")
    sweep, folder = tmp_path / "steady.toml", tmp_path / "a run"
    sweep.write_text(STEADY)

    def run(*options: str) -> Done:
        status = main(["run", "--sweep", str(sweep), "--run", str(folder), *options])
        return Done(status, capsys.readouterr().out.splitlines(), folder)

    return run


def test_the_documented_layer_from_end_to_end(
    tmp_path: Path, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer with a context and a bias is measured, shown, compared, fitted and profiled as ours are.

    Every planned case has a row, a line for each point is printed, and there are pictures and the page. A kernel of the
    user's own that can't be imported is a row at each point, and the reason for status 1.
    """
    text = (ROOT / "docs/implementations.md").read_text(encoding="utf-8")
    (tmp_path / "mylayer.py").write_text("# mylayer.py" + text.split("# mylayer.py", 1)[1].split("```")[0])
    (tmp_path / "broken.py").write_text("import a_package_that_is_not_there\nadapt = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run, layer = tmp_path / "run", "mylayer:MyAttention"
    shape = ["--num-tokens", "5,7", "--channels", "12", "--num-heads", "3", "--batch", "2"]
    shape += ["--num-kv-tokens", "6", "--context-dim", "10"]
    effort = ["--no-race", "--processes", "1", "--budget-s", "0.1", "--no-control"]
    asked = ["--layer", layer, "--impl", "eager,sdpa,broken:adapt", *shape, *effort]
    output = printed("run", *asked, "--run", run, status=1)
    table = load(run).set_index("implementation")
    ends = {("broken:adapt", "error"), *((name, "ok") for name in ("as_is", "eager", "sdpa"))}
    assert Counter(table["status"].items()) == dict.fromkeys(ends, 2)
    ok = table[table["status"] == "ok"]
    assert (ok["error"] <= ok["tolerance"]).all()
    assert (ok["peak_bytes"] > 0).all()
    assert {*re.findall(r"^\[ *([12])/2\]", output, re.MULTILINE)} == {"1", "2"}
    assert "exit status 1: broken:adapt error (2 of 2 points)\n" in output
    assert {"latency", "memory"} <= {path.name.partition("-")[0] for path in (run / "plots").iterdir()}
    assert f"{run / 'report.html'}   all rows: " in output
    assert (run / "report.html").exists()
    for words in (["show", run], ["compare", run, run]):
        assert printed(*words)
    assert "aten::" in printed("profile", run, "--case", "implementation=graph,num_tokens=7")


def test_a_race_has_a_line_for_each_point_and_an_answer(scripted: Bench, tmp_path: Path) -> None:
    """All are answered after their bases here."""
    sweep = tmp_path / "race.toml"
    sweep.write_text(STEADY.replace("race = false", "bound = 0.9\nwithin_s = 15"))
    done = scripted("--sweep", str(sweep))
    assert done.status == 0, done.text
    assert len(done.points) == 3
    assert "\nUse " in done.text


def test_a_log_holds_the_sweeps_lines(scripted: Bench) -> None:
    """The first line says what comes, each point has a line of less than 120 characters, and the answer ends it.

    A resumed run draws its profiles; a line names an unreadable one, and the table is still written.
    """
    done = scripted()
    assert done.status == 0
    assert done.lines[0].startswith("sweep steady: 3 points × 2 implementations")
    assert len(done.points) == 3
    begin, end = (done.lines.index(point) for point in (done.points[0], done.points[-1]))
    assert end - begin == 2
    assert max(map(len, done.lines[: end + 1])) < 120
    assert not any(code in done.text for code in ("\r", "\x1b["))
    (done.folder / "traces").mkdir()
    (done.folder / "traces" / f"broken{SUFFIX}").write_text("rubbish")
    again = scripted()
    assert again.status == 0
    assert len([line for line in again.lines if f"broken{SUFFIX}" in line]) == 1
    assert "   all rows: " in again.lines[-1]


def test_an_own_implementation_that_is_not_ok_fails_its_points(scripted: Bench) -> None:
    """The exit status is 1 and the reason is said once; --fail-on none makes it 0."""
    done = scripted("--impl", "eager,test:raises")
    assert done.status == 1
    assert done.lines.count("exit status 1: test:raises error (3 of 3 points)") == 1
    assert all("1 not timed" in point for point in done.points)
    assert scripted("--impl", "eager,test:raises", "--fail-on", "none").status == 0


def test_points_that_differ_in_one_column_share_their_rounds(scripted: Bench, printed: Callable[..., str]) -> None:
    """Processes and seeds pair; the ratios stand below the answer, on the page, in `show` and after a resumed run."""
    done = scripted("--across", "batch")
    assert done.status == 0, done.text
    keys = {(record.process, record.seed) for record in journal.read(done.folder)}
    assert len(keys) == 4
    table = done.text.partition("implementation  batch")[2].partition("\nvs 1:")[0]
    assert [line.split()[:2] for line in table.splitlines()[1:]] == [[n, b] for n in ("eager", "sdpa") for b in "123"]
    assert len(re.findall(r"(?:0\.99|1\.00)\dx \[", table)) == 4
    assert table in printed("show", done.folder, "--across", "batch")
    rows = pd.read_csv(StringIO(printed("show", done.folder, "--across", "batch", "--format", "csv")))
    assert rows["across"].isna().tolist() == [True, False, False] * 2
    assert rows["across"].sub(1).abs().max() < 0.02
    assert "batch = 1 (99% confidence, this run)" in page(AnalysedRun(done.folder))
    assert table in printed("run", "--run", done.folder)
    assert {(record.process, record.seed) for record in journal.read(done.folder)} == keys


def test_a_check_counts_what_is_correct_and_keeps_nothing(
    scripted: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 1 says that something is incorrect, also in outputs of timed calls; a slow one is only checked."""
    monkeypatch.chdir(tmp_path)
    words = ["run", "--check", "--sweep", str(tmp_path / "steady.toml"), "--impl"]
    assert main([*words, "eager,test:half"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("2 correct") for line in lines[1:4]] == [True] * 3
    assert lines[4] == "Correct: 6 of 6 cases; none is incorrect."
    assert main([*words, "eager,test:wrong_when_timed"]) == 1
    assert "Incorrect: 3 of 6 cases." in capsys.readouterr().out
    assert not (tmp_path / "results").exists()


def test_a_run_or_check_without_a_result_ends_with_1(
    scripted: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is wrong, but nothing is known either."""
    monkeypatch.setenv("TEST_REFERENCE", "unsupported")
    done = scripted()
    assert (done.status, done.lines[-1]) == (1, "exit status 1: nothing was measured (3 of 3 points)")
    assert main(["run", "--check", "--sweep", str(tmp_path / "steady.toml")]) == 1


def test_a_quiet_run_prints_the_table_and_the_path(scripted: Bench) -> None:
    """Neither progress nor the answer above the table."""
    lines = scripted("-q").lines
    assert lines[0].split() == ["point", "use", "within", "latency", "vs", "eager", "ran"]
    assert "   all rows: " in lines[-1]
    assert not any("Use " in line or "[1/3]" in line for line in lines)


def test_a_device_that_is_not_there_fails(scripted: Bench) -> None:
    """A machine without a GPU can't do what --device cuda asks for; beside the CPU the run says so by status 1."""
    done = scripted("--device", "cpu,cuda")
    assert done.status == 1
    assert "exit status 1: eager, sdpa unsupported (3 of 6 points)" in done.lines
    other = done.folder.with_name("other")
    assert scripted("--device", "cuda", "--run", str(other)).status == 2
    assert not other.exists()


STARTED = [sys.executable, "-m", "tests.scripted", "run"]
"""The command that measures with workers that make their times up."""


def begun(*options: str) -> "subprocess.Popen[str]":
    """Return a run in a process of its own."""
    return subprocess.Popen([*STARTED, *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Return the exit status of a run, and its output."""
    text, _ = process.communicate(timeout=60)
    return process.returncode, text


def test_a_run_that_was_interrupted_goes_on_where_it_was(scripted: Bench, tmp_path: Path) -> None:
    """Ctrl-C prints what is kept and how to resume; after it, and after kill -9, the same command finishes the run.

    Each process of a case is then measured once.
    """
    run, sweep = tmp_path / "a run", tmp_path / "steady.toml"
    options = ["--sweep", str(sweep), "--run", str(run)]
    interrupted = begun(*options)
    _wait_for_lines(run / journal.JOURNAL, 5)
    interrupted.send_signal(signal.SIGINT)
    status, text = ended(interrupted)
    assert status == INTERRUPTED, text
    assert re.search(r"Interrupted\. \d of 3 points are finished, [24] of 6\s+cases", text)
    assert f"python -m bench run --run '{run}'" in text
    assert not any(word in text for word in ("KeyboardInterrupt", "Traceback", ".py:", "latency", "warning"))

    killed = begun(*options)
    _wait_for_lines(run / journal.JOURNAL, 9)
    killed.kill()
    ended(killed)

    assert scripted().status == 0
    counts = Counter((record.case, record.process) for record in journal.read(run))
    assert set(counts.values()) == {1}
    assert len(load(run)) == 6
    assert len(counts) == 9 * 2  # two implementations and the control at three points


def test_ctrl_c_at_any_moment_ends_with_its_status(tmp_path: Path) -> None:
    """From the first line on: while modules are imported, processes start, cases are measured, and the end is told."""
    sweep = tmp_path / "steady.toml"
    sweep.write_text(STEADY)
    for least_s, most_s in ((0.0, 0.7), (0.7, 2.0)):
        process = begun("--sweep", str(sweep), "--run", str(tmp_path / f"run-{least_s}"))
        assert process.stdout
        process.stdout.readline()
        time.sleep(random.uniform(least_s, most_s))
        process.send_signal(signal.SIGINT)
        status, text = ended(process)
        assert status in (INTERRUPTED, FINE), (status, text)
        assert not any(word in text for word in ("KeyboardInterrupt", "Traceback", ".py:"))


def _wait_for_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and len(path.read_bytes().splitlines()) >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path.name} never had {count} lines")
