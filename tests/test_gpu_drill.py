"""The drill for a GPU: a line for each part, whatever its outcome."""

import os
import signal
import sys
import tarfile
import time
from pathlib import Path

import pandas as pd
import pytest

from bench.measure import cuda
from tests.drills import gpu as drill
from tests.drills.gpu import Drill, FailedError
from tests.make.simulated_gpu import CLOCK_HZ, Gpu, gpu

__all__ = ["gpu"]


@pytest.fixture
def on_gpu(tmp_path: Path) -> Drill:
    """Return the drill of a GPU, a minute before its end."""
    return Drill("cuda", tmp_path, time.monotonic() + 60)


@pytest.mark.slow
def test_a_rehearsed_run_is_packed_with_all_that_a_run_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines and log are in OUT beside journal, table and pictures of a run, whose workers make their times up."""
    monkeypatch.setattr(drill, "RUN", [sys.executable, "-m", "tests.scripted", "run"])
    assert drill.main([str(tmp_path), "--device", "cpu", "--parts", "known,twins", "--within-s", "960"]) == 0
    skipped, line, last = (tmp_path / drill.LINES).read_text().splitlines()
    assert skipped == "known: skipped: needs a CUDA device"
    assert line.startswith("twins: passed: ")
    assert last.startswith("0 of 2 parts failed; ")
    assert "===== twins" in (tmp_path / drill.LOG).read_text()
    with tarfile.open(tmp_path / drill.PACKED) as packed:
        names = {name.removeprefix("runs/twins/") for name in packed.getnames()}
    assert {"journal.jsonl", "results.csv", "environment.json"} <= names


def _crash(_drill: Drill) -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "alive"


def _raise(_drill: Drill) -> str:
    raise ValueError("two\nlines")


def _sleep(_drill: Drill) -> str:
    print("so far")
    time.sleep(60)
    return "awake"


@pytest.mark.parametrize(
    ("part", "line", "below"),
    [
        (_crash, "rows: failed: ended by SIGSEGV: Fatal Python error: Segmentation fault (", "in _crash"),
        (_raise, "rows: failed: ValueError: two lines (", "in _raise"),
        (_sleep, "rows: failed: took longer than 1 s: so far (", "===== rows"),
        (lambda _: "seen", "rows: passed: seen (", ""),
    ],
)
def test_a_part_has_a_line_and_a_failed_one_the_end_of_its_output(
    part: object, line: str, below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash, an error and a part that takes too long end no other part."""
    monkeypatch.setattr(drill, "rows", part)
    (log := tmp_path / drill.LOG).touch()
    first, *others = drill.tried("rows", "cpu", tmp_path, log, 1.0)
    assert first.startswith(line)
    assert bool(others) is bool(below)
    assert below in "\n".join(others)


def test_rows_that_are_missing_or_bad_fail_a_part() -> None:
    """The text has the reason of each."""
    rows = [("eager", "ok", ""), ("sdpa_cudnn", "unsupported", "no cuDNN"), ("sdpa", "error", "no kernel")]
    table = pd.DataFrame(rows, columns=["implementation", "status", "detail"]).assign(latency_s=1e-5, host_s=2e-6)
    may = {"eager": "ok: ", "sdpa_cudnn": "(ok|unsupported): "}
    said = "eager ok: 10.0 us, host 2.0 us; sdpa_cudnn unsupported: no cuDNN"
    assert drill.ends(table[:2], may) == said
    for own, expected, why in (
        (table[:2], may | {"sdpa_cudnn": "ok: "}, "sdpa_cudnn unsupported: no cuDNN, expected ok: ; eager ok: "),
        (table[:1], may, "not measured in time: sdpa_cudnn; eager ok: "),
        (table[1:2], {"sdpa_cudnn": "unsupported: "}, "no cuDNN"),
    ):
        with pytest.raises(FailedError, match=why):
            drill.ends(own, expected)


def test_kernels_of_known_length_read_in_proportion(gpu: Gpu, on_gpu: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that take their time are found by the empty pair, kernels that take too long by their times."""
    assert "0.00 us" in drill.known(on_gpu)
    gpu.event_s = 1e-5
    with pytest.raises(FailedError, match=r"an empty pair of events 10\.00 us"):
        drill.known(on_gpu)
    gpu.event_s = 0.0
    monkeypatch.setattr(cuda, "_sleep", lambda cycles: gpu.launch(cycles / CLOCK_HZ + 1e-4))
    with pytest.raises(FailedError, match=r"off by -5\.2%"):
        drill.known(on_gpu)
