"""A Slurm of one node on loopback: `python -m tests.drills.cluster`; takes about five minutes.

Submits a sweep of 12 points in 4 tasks. The second task is requeued in mid-work, the third cancelled, the fourth killed
with -9; then the missing shards are submitted with a Python without torch, and again with the right one. Prints what
each step left, and whether the merged run has the cases and statuses of a run without Slurm, and nothing twice.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil

from bench.engine.slurm import SCRIPT
from bench.store import journal
from bench.store.journal import JOURNAL
from bench.store.saved_run import load
from tests import slurm

SWEEP = """
implementations = ["eager", "sdpa", "mha"]
processes = 2
budget_s = 0.2
[[grid]]
batch = [1, 2, 3]
num_tokens = [5, 7, 9, 11]
channels = 12
num_heads = 2
"""

TASKS, WAIT_S = 4, 300.0
ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")


class Job:
    """A sweep in a folder, and what is done with it."""

    def __init__(self, folder: Path) -> None:
        self.sweep, self.run = folder / "twelve.toml", folder / "job"
        self.sweep.write_text(SWEEP)

    def cluster(self, *words: str) -> str:
        """Return what `python -m bench cluster` prints."""
        given = (str(self.sweep), "--nodes", str(TASKS), "--run", str(self.run), "--with=--no-control", *words)
        done = bench("cluster", *given)
        return done.stdout + done.stderr

    def submit(self) -> str:
        """Submit what is missing, and return the number of the job."""
        said = self.cluster("--submit")
        return said.partition("submitted as job ")[2].partition(";")[0].strip()

    def records(self, task: int) -> int:
        """Return the number of lines in the journal of a task."""
        path = self.run / f"shard-{task}" / JOURNAL
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def at_work(self, task: int) -> None:
        """Wait until a task has measured something."""
        wait(lambda: self.records(task) > 0, f"task {task} at work")


def bench(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of the suite."""
    return subprocess.run([sys.executable, "-m", "bench", *words], capture_output=True, text=True, check=False)


def wait(happened: Callable[[], bool], what: str) -> None:
    """Wait until something has happened; raises RuntimeError if it doesn't."""
    end = time.monotonic() + WAIT_S
    while not happened():
        if time.monotonic() > end:
            raise RuntimeError(f"waited {WAIT_S:g} s for: {what}")
        time.sleep(0.1)


def ended(job: str) -> bool:
    """Return whether all tasks of a job have ended."""
    return all(state in ENDED for state in slurm.states(job).values())


def kill(run: Path) -> None:
    """Kill the process that measures a shard, and those below it."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if str(run) in words and "pytest" in words:
            for each in (*process.children(recursive=True), process):
                os.kill(each.pid, signal.SIGKILL)


def main() -> None:
    """Print a line for each step."""
    if reason := slurm.missing():
        print(f"skipped: {reason}")
        return
    with tempfile.TemporaryDirectory() as place, slurm.running(Path(place) / "slurm"):
        begin, job = time.monotonic(), Job(Path(place))
        number = job.submit()
        print(f"job {number} of {TASKS} tasks")
        job.at_work(2)
        slurm.told("scontrol", "requeue", f"{number}_2")
        print(f"task 2 was requeued after {job.records(2)} records")
        job.at_work(3)
        slurm.told("scancel", f"{number}_3")
        print(f"task 3 was cancelled after {job.records(3)} records")
        job.at_work(4)
        kill(job.run / "shard-4")
        print(f"task 4 was killed after {job.records(4)} records")
        wait(lambda: ended(number), "the end of all tasks")
        print(f"states: {slurm.states(number)}; {time.monotonic() - begin:.0f} s")
        print(job.cluster("--status").strip())
        bare = Path(place) / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
        job.cluster()
        script = job.run / SCRIPT
        script.write_text(script.read_text().replace(sys.executable, str(bare / "bin" / "python")))
        without = slurm.told("sbatch", "--parsable", str(script)).strip()
        wait(lambda: ended(without), "the end of the tasks without torch")
        logs = "".join(path.read_text() for path in job.run.glob("slurm-*.log"))
        print(f"without torch: {slurm.states(without)}, {logs.count('has no torch')} logs say that there is no torch")
        again = job.submit()
        wait(lambda: ended(again), "the end of what was missing")
        print(f"submitted again: {slurm.states(again)}")
        print(job.cluster("--status").strip())
        merged, alone = job.run / "merged", Path(place) / "alone"
        shards = [str(job.run / f"shard-{task}") for task in range(1, TASKS + 1)]
        print(bench("merge", str(merged), *shards).stdout.strip())
        words = ["--sweep", str(job.sweep), "--run", str(alone), "--no-control", "-q"]
        subprocess.run([sys.executable, "-m", "pytest", "bench", *words], check=False, stdout=subprocess.DEVNULL)
        tables = [load(run)[["num_tokens", "batch", "implementation", "status"]] for run in (merged, alone)]
        same = len({frozenset(table.itertuples(index=False, name=None)) for table in tables}) == 1
        counts = Counter((record.case, record.process) for record in journal.read(merged))
        print(
            f"the merged run has {len(tables[0])} cases, {'the same' if same else 'NOT the same'} statuses as a run "
            f"without Slurm; {sum(count - 1 for count in counts.values())} processes of cases twice; "
            f"{time.monotonic() - begin:.0f} s in all"
        )


if __name__ == "__main__":
    main()
