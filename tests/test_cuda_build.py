"""A build of torch for CUDA on a machine without a GPU: `nox -s cuda` installs one."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bench.analyse.analysed_run import load

ROOT = Path(__file__).parents[1]

pytestmark = [
    pytest.mark.toolchain,
    pytest.mark.skipif(not torch.version.cuda or torch.cuda.is_available(), reason="needs a CUDA build and no GPU"),
]


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    """Return the output of a command."""
    return subprocess.run(
        [sys.executable, "-m", "bench", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_what_has_a_name_is_listed() -> None:
    """No GPU is needed for that."""
    assert command("list").returncode == 0


@pytest.mark.parametrize("words", [("run",), ("duel", "eager", "sdpa")])
@pytest.mark.parametrize("device", ["cuda", "cuda:7"])
def test_a_gpu_is_refused_in_one_line(words: tuple[str, ...], device: str, tmp_path: Path) -> None:
    """It names what this process sees."""
    done = command(*words, "--device", device, "--run", str(tmp_path / "run"))
    assert done.returncode == 2
    (line,) = [each for each in (done.stdout + done.stderr).splitlines() if "can't be used here" in each]
    assert f"device = {device} " in line


def test_a_cpu_beside_a_gpu_that_is_not_there_is_measured(tmp_path: Path) -> None:
    """Its compiled implementations too, whose compiler asks CUDA; the GPU's rows have torch's reason."""
    shape = ["--num-tokens", "16", "--channels", "32", "--num-heads", "2", "--batch", "1"]
    effort = ["--processes", "1", "--budget-s", "0.1", "--no-race"]
    names = ["--impl", "eager,compiled_eager", "--device", "cpu,cuda"]
    command("run", "--layer", "vit", *shape, *names, *effort, "--run", str(tmp_path / "run"))
    rows = load(tmp_path / "run")
    rows = rows[rows["implementation"] != "control"]
    assert {*rows[rows["device"] == "cpu"]["status"]} == {"ok"}
    assert {*rows[rows["device"] == "cuda"]["status"]} == {"unsupported"}
    assert rows[rows["device"] == "cuda"]["detail"].str.contains("driver").all()
