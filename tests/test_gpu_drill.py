"""The drill for a GPU: a line for each part, whatever becomes of it."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drills import gpu

pytestmark = pytest.mark.slow


def test_a_part_has_its_line_and_its_output(tmp_path: Path) -> None:
    """Without a GPU what needs one is skipped with the reason; the exit status is 0, and OUT has lines and log."""
    command = [sys.executable, "-m", "tests.drills.gpu", str(tmp_path), "--device", "cpu", "--parts", "launch"]
    done = subprocess.run(command, cwd=gpu.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / gpu.LINES).read_text().splitlines()
    assert lines == done.stdout.splitlines()
    assert lines[1].startswith("launch: skipped: needs a CUDA device: it has launches (")
    assert lines[2].startswith("0 of 1 parts failed; ")
    assert "===== launch" in (tmp_path / gpu.LOG).read_text()
    assert {path.name for path in tmp_path.iterdir()} == {gpu.LINES, gpu.LOG, gpu.RUNS}


def test_a_part_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """Such a part has failed, with the last line that it printed."""
    log = tmp_path / gpu.LOG
    log.write_text("")
    line = gpu.tried("correct", "cpu", tmp_path / "runs", log, most_s=0.2)
    assert line.startswith("correct: failed: took longer: ")


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    """The line says which there are."""
    with pytest.raises(SystemExit) as end:
        gpu.main([str(tmp_path), "--parts", "corrects"])
    assert end.value.code == 2


def test_old_and_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the version that is installed and the one that is needed."""

    def version(name: str) -> str:
        if name == "rich":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0" if name == "pandas" else "9999"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert gpu.packages() == ["pandas 1.0 is installed, pandas>=2.2 is needed", "rich is missing"]
