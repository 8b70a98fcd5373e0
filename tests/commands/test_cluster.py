"""`cluster`: from a sweep's name to a script."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.engine.slurm import SCRIPT


def test_a_script_is_written_and_the_next_steps_are_said(tmp_path: Path, told: Callable[..., str]) -> None:
    """Options of the sweep are passed on; --status writes nothing."""
    words = ("cluster", "quick", "--nodes", 3, "--run", tmp_path / "job")
    assert "shard 1/3: 0 of" in told(*words, "--status")
    assert not (tmp_path / "job").exists()
    text = told(*words, "--with", "--impl eager,sdpa --processes 2")
    script = tmp_path / "job" / SCRIPT
    assert "--sweep quick --impl eager,sdpa --processes 2" in script.read_text()
    assert f"sbatch {script}" in text
    assert f"merge {tmp_path / 'job' / 'merged'}" in text


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nosuch", "--nodes", 2], "unknown sweep 'nosuch'"),
        (["article", "--nodes", 0], "--nodes 0 must be at least 1"),
        (["article", "--nodes", 2, "--at-once", 0], "--at-once 0 must be at least 1"),
        (["article", "--nodes", 4000], "at most"),
        (["article", "--nodes", 2, "--with", "--shard 1/2"], "--shard can't stand in --with"),
        (["article", "--nodes", 2, "--with", "--nosuch 3"], "--with: unrecognized arguments: --nosuch 3"),
        (["article", "--nodes", 2, "--with", "--processes x"], "--with: argument --processes: invalid int value: 'x'"),
    ],
)
def test_a_wrong_request_ends_with_2_and_one_line(
    words: list[object], line: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    """Nothing is written."""
    assert line in refused("cluster", *words, "--run", tmp_path / "job")
    assert not (tmp_path / "job").exists()
