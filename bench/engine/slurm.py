"""A sweep as an array job of Slurm: the script, what is missing, and its submission.

Each task measures one shard into a run folder of its own. What is done follows from these folders, never from Slurm.
"""

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.plan.case import Point
from bench.plan.errors import CannotWrite, WrongRequest
from bench.plan.shard import Shard
from bench.plan.sweep import Sweep
from bench.store import plan
from bench.store.saved_run import SavedRun

SCRIPT, LOGS = "array.sbatch", "slurm-%a.log"
"""The names of the script, and of the logs of tasks, in the folder of a job."""

SIGNAL_S = 60
"""The seconds before the end of its time at which Slurm interrupts a task, so that the task ends its workers."""

TEMPLATE = """\
#!/bin/bash
# Measures a sweep in shards, one for each task: {summary}.
# Written by `python -m bench cluster`; edit it as your site needs it, then: sbatch {path}
#SBATCH --job-name=attention-bench
#SBATCH --array={array}
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:INT@{signal_s}
#SBATCH --output="{logs}"
{partition}# Add here: account, constraint, container.

# Add here: modules, an environment to activate.
set -u
cd {checkout} || exit 1
{python} -c "import torch" || {{ echo "$(hostname): {python} has no torch; nothing was measured"; exit 1; }}

# Temporary files go to $TMPDIR, best on the node's own disk; the run folder is on a disk that all nodes share.
# `exec`: the signal before the end of the time must reach Python, which then ends its workers.
exec {python} -m pytest bench {words} \\
    --shard "$SLURM_ARRAY_TASK_ID/{count}" --run {folder}/shard-"$SLURM_ARRAY_TASK_ID"
"""


@dataclass(frozen=True)
class Part:
    """A shard of a job: its folder, and how many of its points are measured."""

    shard: Shard
    folder: Path
    measured: int
    planned: int

    @property
    def is_done(self) -> bool:
        """Whether all of its points are measured."""
        return self.measured == self.planned


def parts(sweep: Sweep, count: int, folder: Path) -> list[Part]:
    """Return the shards of a sweep with what their folders hold.

    Raises WrongRequest if the sweep has fewer parts, or if a folder holds another sweep.
    """
    return [_part(sweep, Shard(number, count), folder / f"shard-{number}") for number in range(1, count + 1)]


def _part(sweep: Sweep, shard: Shard, folder: Path) -> Part:
    planned = sweep.sharded(shard)
    stored = plan.load(folder) if folder.is_dir() else None
    if stored is None:
        return Part(shard, folder, 0, len(planned.points))
    if stored.shard != shard or stored.implementations != planned.implementations:
        raise WrongRequest(f"{folder} holds another sweep: use a new --run")
    return Part(shard, folder, _measured(stored, folder), len(stored.points))


def _measured(sweep: Sweep, folder: Path) -> int:
    """Return how many points of a run folder have all processes of each case that did not fail.

    A task may be writing into the folder: it is read as it is, without its lock.
    """
    ended: dict[tuple[Point, str], int] = {}
    for entry in SavedRun(folder).entries:
        key = entry.case.point, entry.case.implementation
        ended[key] = ended.get(key, 0) + 1 if entry.status == "ok" else sweep.effort.processes
    return sum(
        all(ended.get((point, name), 0) >= sweep.effort.processes for name in sweep.measured) for point in sweep.points
    )


def script(
    missing: Sequence[Part],
    folder: Path,
    words: Sequence[str],
    *,
    checkout: Path,
    python: str,
    at_once: int | None,
    partition: str | None,
) -> str:
    """Return the script that measures the missing shards; `at_once` is the most tasks that run at a time."""
    array = ",".join(str(part.shard.number) for part in missing)
    points = sum(part.planned - part.measured for part in missing)
    return TEMPLATE.format(
        summary=f"{points} points in {len(missing)} tasks",
        path=shlex.quote(str(folder / SCRIPT)),
        array=f"{array}%{at_once}" if at_once else array,
        signal_s=SIGNAL_S,
        logs=folder / LOGS,
        partition=f"#SBATCH --partition={partition}\n" if partition else "",
        checkout=shlex.quote(str(checkout)),
        python=shlex.quote(python),
        words=shlex.join(words),
        count=missing[0].shard.count,
        folder=shlex.quote(str(folder)),
    )


def write(text: str, folder: Path) -> Path:
    """Write a script into the folder of its job, and return its file; raises CannotWrite if that fails."""
    path = folder / SCRIPT
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotWrite(f"{path} can't be written: {error.strerror}") from None
    return path


def submit(path: Path) -> str:
    """Submit a script, and return the number of its job; raises WrongRequest if Slurm isn't there or refuses it."""
    if shutil.which("sbatch") is None:
        raise WrongRequest(f"there is no sbatch here; on a machine that has Slurm: sbatch {shlex.quote(str(path))}")
    done = subprocess.run(["sbatch", "--parsable", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise WrongRequest(f"Slurm refuses {path}: {lines[0] if lines else f'exit status {done.returncode}'}")
    return done.stdout.strip().partition(";")[0]
