"""`run` as a user calls it: options, refusals, and one sweep from end to end; `pytest bench` is the same.

Most tests have workers that make their times up, inside this process, because importing torch takes seconds.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import bench.show.charts.catalogue
import bench.show.pages.run
import bench.show.summary
import bench.show.terminal.console  # each run forgets what it imports itself
from bench.analyse.analysed_run import load
from bench.cli import main
from bench.engine.run import Run
from bench.machine.signals import INTERRUPTED
from bench.plan import names
from bench.plan.case import CONTROL
from bench.plan.sweep import Sweep
from bench.store import journal
from bench.store.profile import SUFFIX
from bench.store.saved_run import SavedRun
from tests.store.disk import full_after

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
    """What a run inside this process did: its exit status, its lines on standard output, and its run folder."""

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


def test_the_readmes_layer_from_end_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer with a context and a bias is raced, compared, drawn, fitted and profiled as ours are, but not predicted.

    One command leaves a row for every planned case, pictures, a line for each point, the page and a table.
    A kernel of the user's own that can't be imported is a row at each point, and the reason for status 1.
    """
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "mylayer.py").write_text("# mylayer.py" + readme.split("# mylayer.py", 1)[1].split("```")[0])
    (tmp_path / "broken.py").write_text("import a_package_that_is_not_there\nadapt = 1\n")
    run, layer = tmp_path / "run", "mylayer:MyAttention"
    shape = ["--num-tokens", "5,7", "--channels", "12", "--num-heads", "3", "--batch", "2"]
    shape += ["--num-kv-tokens", "6", "--context-dim", "10"]
    effort = ["--bound", "90%", "--within", "60s", "--processes", "2", "--budget-s", "0.2", "--no-control"]
    asked = ["--layer", layer, "--impl", "eager,sdpa,mha,broken:adapt", *shape, *effort]
    command = [sys.executable, "-m", "pytest", str(ROOT / "bench"), *asked, "--run", str(run)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    table = load(run).set_index("implementation")
    ok = table[table["status"] == "ok"]
    assert Counter(table["status"].items()) == Counter(
        {
            **{(name, "ok"): 2 for name in ("as_is", "eager", "sdpa")},
            ("mha", "unsupported"): 2,
            ("broken:adapt", "error"): 2,
        }
    )
    assert table["detail"]["broken:adapt"].str.contains("can't be imported: No module named 'a_pack").all()
    assert (ok["error"] <= ok["tolerance"]).all()
    assert (ok["peak_bytes"] > 0).all()
    assert {*table["layer"]} == {layer}
    assert "a race to 90% within 1m" in " ".join(done.stdout.split())
    assert {*re.findall(r"^\[ *([12])/2\]", done.stdout, re.MULTILINE)} == {"1", "2"}
    assert re.search(r"exit status is 1: 2 of 2 points\n +broken:adapt error", done.stdout)
    assert {path.suffix for path in (run / "plots").iterdir()} == {".png"}
    assert {"latency", "scaling"} <= {path.name.partition("-")[0] for path in (run / "plots").iterdir()}
    assert f"The page: {run / 'report.html'}" in done.stdout
    assert (run / "report.html").read_text(encoding="utf-8").count("data:image/") >= 2
    assert "start-up" not in done.stdout

    assert main(["show", str(run)]) == main(["scaling", str(run)]) == main(["compare", str(run), str(run)]) == 0
    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["profile", str(run), "--case", "implementation=sdpa,num_tokens=7"]) == 0
    profiled = capsys.readouterr().out
    assert "aten::" in profiled
    assert f"sdpa · {layer} · float32" in profiled


def test_a_folder_says_that_its_run_was_a_race(
    scripted: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two points end with an answer, and one that is far behind is measured once; the folder knows that it was a race.

    To go on with what is answered measures nothing more, and gives the same answer.
    """
    sweep = tmp_path / "race.toml"
    race = STEADY.replace("race = false", "bound = 0.9\nwithin_s = 15").replace("[1, 2, 3]", "[1, 2]")
    sweep.write_text(race.replace('"sdpa"', '"sdpa", "test:half"'))
    done = scripted("--sweep", str(sweep))
    assert done.status == 0, done.text
    assert "a race to 90% within 15s" in " ".join(done.text.split())
    lines = re.findall(r"^\[([12])/2\] (B=[12]): (?:fastest|use)", done.text, re.MULTILINE)
    assert lines[:2] == [("1", "B=1"), ("2", "B=2")]
    answer = done.text.rpartition("]")[0].rpartition("Use ")[2]
    assert answer
    effort = vars(SavedRun(done.folder).effort)
    assert (effort["race"], effort["bound"], effort["within_s"], effort["processes"]) == (True, 0.9, 15, 2)
    counts = Counter((record.case.point.batch, record.case.implementation) for record in journal.read(done.folder))
    assert [counts[batch, "sdpa"] for batch in (1, 2)] == [1, 1]
    assert all(counts[batch, name] >= 2 for batch in (1, 2) for name in ("eager", "test:half", CONTROL))
    table = load(done.folder)
    assert table["status"].tolist() == ["ok"] * 6

    before = (done.folder / journal.JOURNAL).read_bytes()
    assert main(["run", "--run", str(done.folder)]) == 0
    assert (done.folder / journal.JOURNAL).read_bytes() == before
    assert capsys.readouterr().out.rpartition("]")[0].rpartition("Use ")[2] == answer
    assert load(done.folder)["latency_s"].tolist() == table["latency_s"].tolist()


def test_a_log_holds_the_sweeps_lines(scripted: Bench) -> None:
    """The first line says what comes, each point has a line of less than 120 characters, and the answer ends it.

    A run that goes on draws what its profiles show; one that can't be read is named in a line, and costs no table.
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
    assert any(line.startswith("The long table: ") for line in again.lines)


def test_a_control_that_is_off_is_named_at_the_end(
    scripted: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control that is off is named after the points, with what it differs by; it stands in no table."""
    sweep, run = tmp_path / "off.toml", tmp_path / "off"
    sweep.write_text(STEADY)
    monkeypatch.setattr(Sweep, "computed_by", lambda _, name: "test:half" if name == CONTROL else name)
    done = scripted("--sweep", str(sweep), "--run", str(run))
    assert done.status == 0
    assert done.lines[0].startswith("sweep off: 3 points × 2 implementations and control")
    after = " ".join(done.lines[done.lines.index(done.points[-1]) + 1 :])
    assert re.search(r"a second eager differed from the first by up to (9\d|10\d)%", after)
    assert SavedRun(run).whole["implementation"].tolist()[2::3] == [CONTROL] * 3
    assert not any(CONTROL in line for line in done.points)


def test_without_a_control_nothing_is_said_of_it(scripted: Bench) -> None:
    """Neither a line nor a row."""
    done = scripted("--no-control")
    assert done.status == 0
    assert "a second eager" not in done.text
    assert CONTROL not in SavedRun(done.folder).whole["implementation"].tolist()


def test_an_own_implementation_that_is_not_ok_fails_its_points(scripted: Bench) -> None:
    """The exit status is 1 and the reason is said once; --fail-on none makes it 0."""
    done = scripted("--impl", "eager,test:raises")
    assert done.status == 1
    assert done.text.count("exit status is 1: 3 of 3 points") == 1
    assert all("1 not timed" in point for point in done.points)
    assert scripted("--impl", "eager,test:raises", "--fail-on", "none").status == 0


def test_a_device_that_is_not_there_fails(scripted: Bench) -> None:
    """A machine without a GPU can't do what --device cuda asks for; beside the CPU the run says so by status 1."""
    done = scripted("--device", "cpu,cuda")
    assert done.status == 1
    assert "  eager, sdpa unsupported (at 3 points)" in done.lines
    other = done.folder.with_name("other")
    assert scripted("--device", "cuda", "--run", str(other)).status == 2
    assert not other.exists()


def test_ctrl_c_while_workers_start_says_that_nothing_was_measured(
    scripted: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status is that of an interruption, and there is no traceback."""

    def interrupted(_run: Run) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "__enter__", interrupted)
    done = scripted()
    assert done.status == INTERRUPTED
    assert "Interrupted before anything was measured." in done.lines


STARTED = [sys.executable, "-m", "pytest", "-p", "tests.scripted_plugin", str(ROOT / "bench")]
"""The command that measures with workers that make their times up."""


def begun(*options: str) -> "subprocess.Popen[str]":
    """Return a run in a process of its own, whose replicates take a while."""
    environment = {**os.environ, "TEST_PREPARE_S": "0.1"}
    return subprocess.Popen(
        [*STARTED, *options], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Return the exit status of a run, and what it wrote."""
    text, _ = process.communicate(timeout=60)
    return process.returncode, text


def test_a_run_that_was_interrupted_goes_on_where_it_was(scripted: Bench, tmp_path: Path) -> None:
    """Ctrl-C says what is kept and the command that goes on; after it and after kill -9 the same command ends the run.

    Each process of a case is then measured once.
    """
    run, sweep = tmp_path / "a run", tmp_path / "steady.toml"
    options = ["--sweep", str(sweep), "--run", str(run)]
    interrupted = begun(*options)
    _wait_for_lines(run / journal.JOURNAL, 5)
    interrupted.send_signal(signal.SIGINT)
    status, text = ended(interrupted)
    assert status in (2, -signal.SIGINT), text  # pytest's own; CPython's if it came while a text was compiled
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


def test_a_full_disk_ends_the_run_in_words(tmp_path: Path) -> None:
    """A journal that can't be written ends the run with a line; what it has is kept."""
    run, sweep = tmp_path / "a run", tmp_path / "steady.toml"
    sweep.write_text(STEADY)
    with full_after(10 * 1024):
        status, text = ended(begun("--sweep", str(sweep), "--run", str(run)))
    assert 0 < len(journal.read(run)) < 9 * 2
    assert status == 4, text
    assert "can't be written" in " ".join(text.split())
    assert "Traceback" not in text


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    """Two in a row leave no traceback, and a status of an interruption."""
    sweep = tmp_path / "steady.toml"
    sweep.write_text(STEADY)
    process = begun("--sweep", str(sweep), "--run", str(tmp_path / "run"))
    _wait_for_lines(tmp_path / "run" / journal.JOURNAL, 1)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    status, text = ended(process)
    assert status in (2, INTERRUPTED)
    assert not any(word in text for word in ("KeyboardInterrupt", "Traceback", ".py:"))


def _wait_for_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and len(path.read_bytes().splitlines()) >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path.name} never had {count} lines")


def test_a_wrong_request_is_a_line_for_each_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What can't be carried out ends before anything starts, with what came and what could have come."""
    names, run = "sdap,onlin,./mine:adapt,nosuch:adapt", tmp_path / "run"
    assert main(["run", "--impl", names, "--dtype", "fp32", "--run", str(run)]) == 2
    out, err = capsys.readouterr()
    assert (out, run.exists()) == ("", False)
    expected = ("for 'sdap', online for 'onlin'", "mine:adapt", "module nosuch", "dtype")
    assert all(message in line for message, line in zip(expected, err.splitlines(), strict=True))


def test_nothing_slow_is_imported_before_the_first_line() -> None:
    """Reading the options takes neither pandas nor the libraries of statistics and pictures, and never torch."""
    program = (
        "import sys, bench.conftest, bench.commands.run\n"
        "print({'pandas', 'numpy', 'scipy', 'matplotlib', 'torch'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "set()\n", done.stderr


def test_pytest_bench_is_the_same_command(tmp_path: Path) -> None:
    """It takes the options, has pytest's status for a wrong request, and lists points without measuring them."""
    (tmp_path / "steady.toml").write_text(STEADY)
    command = [sys.executable, "-m", "pytest", str(ROOT / "bench"), "--sweep", str(tmp_path / "steady.toml")]
    lists, wrong = (
        subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        for words in (["--collect-only"], ["--impl", "sdap"])
    )
    assert (lists.returncode, len(lists.stdout.splitlines())) == (0, 3)
    assert "b2-n5-c12-h2" in lists.stdout
    assert (wrong.returncode, wrong.stdout) == (4, "")
    assert "unknown implementation 'sdap'" in wrong.stderr
