"""SIGKILL at random moments: `python -m tests.drills.kills [KILLS]`.

A sweep of 60 short cases is begun again and again, and the whole tree of its processes is killed after a random time,
until it ends by itself or was killed so often. Prints how many journals could not be read, how many processes of a case
were measured twice, whether the set of cases is that of an undisturbed run, and what is left.
Then the parent alone is killed a few times.
It kills only what it has started.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from bench.store import journal
from bench.store.journal import JOURNAL
from bench.store.record import Record

KILLS = 100
LEAST_S, MOST_S = 0.5, 14.0
"""Each attempt is killed between these seconds after its begin."""

SWEEP = """
implementations = ["eager", "sdpa", "manual", "online", "mha"]
processes = 1
target = 0.5
budget_s = 0.1
[[grid]]
batch = [1, 2, 3]
num_tokens = [5, 7, 9, 11]
channels = 12
num_heads = 2
"""

ORPHANS, ORPHANED_S, WORKING = 5, 5.0, 3
"""The parent alone is killed so often, after WORKING records, and its processes are counted so many seconds later."""

ROOT = Path(__file__).parents[2]
Key = tuple[str, str, int, str]


def begun(sweep: Path, run: Path, scratch: Path) -> "subprocess.Popen[bytes]":
    """Return a started run in a session of its own."""
    command = [sys.executable, "-m", "pytest", str(ROOT / "bench"), "--sweep", str(sweep), "--run", str(run)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [*command, "--no-control", "-q"],
        stdout=quiet,
        stderr=quiet,
        env={**os.environ, "TMPDIR": str(scratch)},
        start_new_session=True,
    )


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a run with all of its processes at once."""
    try:
        tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        tree = []
    for each in tree:
        try:
            each.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    process.wait()


def keys(records: list[Record]) -> Counter[Key]:
    """Return the measured processes of cases, with their statuses."""
    return Counter((each.case.point.name, each.case.implementation, each.process, each.status) for each in records)


def main(kills: int = KILLS, seed: int = 0) -> None:
    """Print a line for every tenth kill, and the outcome."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sweep, scratch = folder / "short.toml", folder / "tmp"
        scratch.mkdir()
        sweep.write_text(SWEEP)
        whole = folder / "undisturbed"
        begun(sweep, whole, scratch).wait()
        expected = keys(journal.read(whole))
        done = unreadable = twice = rounds = same = 0
        while done < kills:
            rounds += 1
            run = folder / f"run-{rounds}"
            while done < kills:
                process = begun(sweep, run, scratch)
                try:
                    process.wait(rng.uniform(LEAST_S, MOST_S))
                    break
                except subprocess.TimeoutExpired:
                    kill(process)
                done += 1
                try:
                    found = keys(journal.read(run)) if (run / JOURNAL).exists() else Counter()
                except Exception as error:
                    unreadable += 1
                    print(f"kill {done}: {type(error).__name__}: {error}")
                    continue
                twice += sum(count - 1 for count in found.values())
                if done % 10 == 0:
                    print(f"{done} kills, {len(found)} of {len(expected)} cases in run {rounds}", flush=True)
                if len(found) == len(expected):
                    break  # a further kill would find nothing at work
            begun(sweep, run, scratch).wait()  # what the last kill left out
            found = keys(journal.read(run))
            twice += sum(count - 1 for count in found.values())
            same += found == expected
        time.sleep(1)
        ours = alive(scratch)
        left = len([*scratch.iterdir()])
        orphans = [orphaned(sweep, folder / f"orphans-{number}", scratch) for number in range(ORPHANS)]
    had, lived = (", ".join(map(str, each)) for each in zip(*orphans, strict=True))
    print(f"the parent alone was killed {ORPHANS} times, with {had} processes; {ORPHANED_S:g} s later {lived} lived")
    print(
        f"{done} kills in {rounds} runs: {unreadable} journals could not be read, {twice} processes of cases were "
        f"measured twice, {same} of {rounds} runs have the cases and statuses of an undisturbed one "
        f"({len(expected)}); {len(ours)} processes and {left} temporary files are left"
    )


def alive(scratch: Path) -> list[psutil.Process]:
    """Return the living processes of runs that were begun with this temporary folder."""
    return [
        each
        for each in psutil.process_iter(["environ", "status"])
        if (each.info["environ"] or {}).get("TMPDIR") == str(scratch) and each.info["status"] != psutil.STATUS_ZOMBIE
    ]


def orphaned(sweep: Path, run: Path, scratch: Path) -> tuple[int, int]:
    """Return how many processes a run had when its parent alone was killed, and how many lived ORPHANED_S later."""
    process = begun(sweep, run, scratch)
    while not (run / JOURNAL).exists() or len(journal.read(run)) < WORKING:
        time.sleep(0.05)
    before = len(alive(scratch))
    process.kill()
    process.wait()
    time.sleep(ORPHANED_S)
    after = alive(scratch)
    for each in after:
        each.kill()
    return before, len(after)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
