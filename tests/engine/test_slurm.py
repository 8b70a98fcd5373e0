"""A sweep as an array job of Slurm."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from bench.engine import slurm
from bench.plan.case import Case
from bench.plan.errors import CannotWrite, WrongRequest
from bench.plan.shard import Shard
from bench.plan.sweep import Effort, Sweep
from bench.store import journal, plan
from bench.store.journal import JOURNAL
from tests import slurm as real
from tests.examples import record
from tests.points import point

POINTS = tuple(point(num_tokens=number) for number in range(5, 11))
SWEEP = Sweep("six", POINTS, ("eager", "sdpa"), "eager", effort=Effort(processes=2))
"""A sweep of six points."""


def script(folder: Path, count: int = 3, **changes: object) -> str:
    """Return the script of a job of which nothing is measured yet."""
    given = {"checkout": Path("/a checkout"), "python": "/a/python", "at_once": None, "partition": None, **changes}
    return slurm.script(slurm.parts(SWEEP, count, folder), folder, ["--sweep", "six"], **given)  # type: ignore[arg-type]


def measured(folder: Path, number: int, points: int, status: str = "ok") -> None:
    """Write a shard's folder in which some points have all of their processes."""
    mine = SWEEP.sharded(Shard(number, 3))
    records = [
        record(case=Case(at, name), process=process, status=status)
        for at in mine.points[:points]
        for name in SWEEP.implementations
        for process in range(SWEEP.effort.processes if status == "ok" else 1)
    ]
    (folder / f"shard-{number}").mkdir(parents=True)
    journal.append(folder / f"shard-{number}", records)
    plan.save(mine, folder / f"shard-{number}")


def test_what_is_done_follows_from_the_folders(tmp_path: Path) -> None:
    """A shard without a folder has nothing; a point counts if all of its cases have their processes, or failed."""
    measured(tmp_path / "a", 2, points=1)
    assert [(part.measured, part.planned) for part in slurm.parts(SWEEP, 3, tmp_path / "a")] == [(0, 2), (1, 2), (0, 2)]
    measured(tmp_path / "b", 1, points=2, status="unsupported")
    assert [part.is_done for part in slurm.parts(SWEEP, 3, tmp_path / "b")] == [True, False, False]


def test_a_folder_of_another_sweep_is_refused(tmp_path: Path) -> None:
    """Its shard is another one, so its points would be missing."""
    measured(tmp_path, 1, points=1)
    (tmp_path / "shard-1").rename(tmp_path / "shard-3")
    with pytest.raises(WrongRequest, match="shard-3 holds another sweep"):
        slurm.parts(SWEEP, 3, tmp_path)


def test_the_script_has_a_task_for_each_missing_shard(tmp_path: Path) -> None:
    """Paths with spaces are quoted; the partition and the most tasks at a time are said if they were asked for."""
    text = script(tmp_path, at_once=2, partition="gpu")
    assert "#SBATCH --array=1,2,3%2\n" in text
    assert "#SBATCH --partition=gpu\n" in text
    assert "\ncd '/a checkout' ||" in text
    assert "--partition" not in script(tmp_path)
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file is in its place."""
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite, match="can't be written"):
        slurm.write("text", tmp_path / "file")


def test_without_slurm_the_command_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be typed where Slurm is."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WrongRequest, match=re.escape(f"sbatch {tmp_path / 'a.sbatch'}")):
        slurm.submit(tmp_path / "a.sbatch")


@pytest.mark.slow
@pytest.mark.skipif(bool(real.missing()), reason=f"no Slurm: {real.missing()}")
def test_a_real_slurm_runs_each_task_with_its_shard(tmp_path: Path) -> None:
    """The interpreter stands for Python: it writes down its words. A partition that isn't there is refused."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] || echo "$@" >> {tmp_path}/words\n')
    python.chmod(0o755)
    job = tmp_path / "a job"
    with real.running(tmp_path / "slurm"):
        wrong = slurm.write(script(job, 2, checkout=tmp_path, python=str(python), partition="nosuch"), job)
        with pytest.raises(WrongRequest, match="invalid partition specified: nosuch"):
            slurm.submit(wrong)
        number = slurm.submit(slurm.write(script(job, 2, checkout=tmp_path, python=str(python)), job))
        end = time.monotonic() + 60
        while {*real.states(number).values()} != {"COMPLETED"} and time.monotonic() < end:
            time.sleep(0.2)
    lines = sorted((tmp_path / "words").read_text().splitlines())
    assert lines == [f"-m pytest bench --sweep six --shard {n}/2 --run {job}/shard-{n}" for n in (1, 2)]
    assert os.environ.get("SLURM_CONF") is None
    assert not (job / "shard-1" / JOURNAL).exists()
