"""The door `pytest bench`, from outside: options, refusals, and one sweep from end to end."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from bench.store import journal
from bench.store.table import load

ROOT = Path(__file__).parents[1]

TINY = """
implementations = ["eager", "sdpa", "mha"]
processes = 2
target = 0.5
budget_s = 0.2
[defaults]
batch = 2
[[grid]]
num_tokens = [5, 7]
channels = 12
num_heads = 2
[[grid]]
num_tokens = 5
token_len = 6
channels = 12
num_heads = 2
"""

STEADY = """
implementations = ["eager", "sdpa"]
processes = 2
target = 0.5
budget_s = 0.2
[[grid]]
batch = [1, 2, 3]
num_tokens = 5
channels = 12
num_heads = 2
"""
"""Points that make no picture, and cases that are all ok."""

GRID = """
implementations = ["eager"]
[[grid]]
"""


def bench(*options: str, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    """Return what `python -m pytest bench` did."""
    command = [sys.executable, "-m", "pytest", str(ROOT / "bench"), *options]
    environment = {**os.environ, "COLUMNS": "160"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Return a sweep file of tiny shapes."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def test_a_tiny_sweep_from_end_to_end(tiny: Path, tmp_path: Path) -> None:
    """One command leaves a row for every planned case, pictures, JSON, a line for each point and a table."""
    run, report = tmp_path / "run", tmp_path / "out.json"
    done = bench("--sweep", str(tiny), "--run", str(run), f"--benchmark-json={report}")
    assert done.returncode == 0, done.stdout + done.stderr
    table = load(run)
    assert Counter(table["status"]) == {"ok": 8, "unsupported": 1}
    assert table["detail"][table["status"] == "unsupported"].item().startswith("nn.MultiheadAttention needs")
    assert len(re.findall(r"^\[ *[123]/3\]", done.stdout, re.MULTILINE)) == 3
    assert {path.suffix for path in (run / "plots").iterdir()} == {".png", ".svg"}
    assert f"python -m bench scaling {run}" in done.stdout
    assert "start-up" not in done.stdout
    rows = json.loads(report.read_text())["benchmarks"]
    medians = {row["name"]: row["stats"]["median"] for row in rows}
    assert sorted(medians.values()) == sorted(table["latency_s"].dropna())
    assert len(rows) == 8


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """After Ctrl-C and after kill -9 the same command ends with every case, each process of it measured once."""
    run, sweep = tmp_path / "run", tmp_path / "steady.toml"
    sweep.write_text(STEADY)
    options = ["--sweep", str(sweep), "--run", str(run), "-q"]
    for how, lines in ((signal.SIGINT, 1), (signal.SIGKILL, 6)):
        command = [sys.executable, "-m", "pytest", str(ROOT / "bench"), *options]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _wait_for_lines(run / journal.JOURNAL, lines)
        process.send_signal(how)
        process.wait(timeout=30)
    assert bench(*options).returncode == 0
    counts = Counter((record.case, record.process) for record in journal.read(run))
    assert set(counts.values()) == {1}
    assert len(load(run)) == 6
    assert len(counts) == 6 * 2


def _wait_for_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and len(path.read_bytes().splitlines()) >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path.name} never had {count} lines")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            TINY.replace("channels = 12", "channels = 100").replace("num_heads = 2", "num_heads = 3"),
            r"100.*num_heads = 3",
        ),
        (TINY + "colour = 1", "unknown key 'colour'"),
        (
            GRID + 'layer = "patch"\nimage_size = 30\npatch_size = 4\nchannels = 64',
            "image_size = 30 must be divisible by patch_size = 4",
        ),
    ],
)
def test_a_wrong_sweep_is_one_line_and_status_4(content: str, message: str, tmp_path: Path) -> None:
    """Impossible values and unknown keys end at once, without a traceback."""
    path = tmp_path / "wrong.toml"
    path.write_text(content)
    _refused(["--sweep", str(path)], message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sweep", "missing.toml"], "missing.toml does not exist"),
        (["--impl", "sdap"], "unknown implementation 'sdap'; expected one of eager, manual"),
        (["--impl", "nosuchmodule:kernel", "--processes", "1"], "'nosuchmodule:kernel' can't be imported"),
    ],
)
def test_a_wrong_option_is_one_line_and_status_4(options: list[str], message: str, tmp_path: Path) -> None:
    """What can't be carried out ends at once with what came and what could have come."""
    _refused([*options, "--run", str(tmp_path / "run")], message)
    assert not (tmp_path / "run").exists()


def _refused(options: list[str], message: str) -> None:
    done = bench(*options)
    assert done.returncode == 4, done.stdout
    said = [line for line in (done.stderr + done.stdout).splitlines() if "ERROR" in line]
    assert len(said) == 1
    assert re.search(message, said[0])
    assert "Traceback" not in done.stdout + done.stderr


def test_collect_only_lists_the_points_and_starts_nothing(tiny: Path) -> None:
    """The points can be listed and selected with pytest's own options."""
    done = bench("--sweep", str(tiny), "--collect-only", "-q", "-k", "n7")
    assert "1/3 tests collected" in done.stdout
    assert "n7-c12-h2" in done.stdout
