"""SIGKILL at random moments: `python -m tests.drills.kills [KILLS] [--race]`.

A sweep of 60 short cases is begun again and again, and the whole tree of its processes is killed after a random time,
until it ends by itself or was killed so often. Prints how many journals could not be read, how many processes of a case
were measured twice, whether the set of cases is that of an undisturbed run, and what is left.
Then the parent alone is killed a few times. With --race it is a race of four points of longer calls, in which the
number of processes is not fixed: there the set of cases is compared, and whether every point has its answer.
It kills only what it has started.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.analyse.standing import FASTEST, NAMED
from bench.store import journal
from bench.store.journal import JOURNAL
from bench.store.record import Record
from bench.store.saved_run import SavedRun

KILLS = 100
LEAST_S, MOST_S = 0.5, 14.0
"""Each attempt is killed between these seconds after its begin; in a race, whose points take longer, twice as late."""

SWEEP = """
implementations = ["eager", "sdpa", "manual", "online", "mha"]
processes = 1
race = false
budget_s = 0.1
[[grid]]
batch = [1, 2, 3]
num_tokens = [5, 7, 9, 11]
channels = 12
num_heads = 2
"""

RACE = """
implementations = ["eager", "sdpa", "manual", "online", "mha"]
processes = 2
budget_s = 1
bound = 0.01
within_s = 40
[[grid]]
batch = 4
num_tokens = [50, 100, 197, 300]
channels = 384
num_heads = 6
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


@dataclass
class Found:
    """What the kills left: a number of each."""

    kills: int = 0
    runs: int = 0
    unreadable: int = 0
    twice: int = 0
    same: int = 0


def main() -> None:
    """Print a line for every tenth kill, and the outcome."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kills", nargs="?", type=int, default=KILLS)
    parser.add_argument("--race", action="store_true")
    given = parser.parse_args()
    kills = given.kills
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sweep, scratch = folder / "short.toml", folder / "tmp"
        scratch.mkdir()
        sweep.write_text(RACE if given.race else SWEEP)
        whole = folder / "undisturbed"
        begun(sweep, whole, scratch).wait()
        expected, found, rng = keys(journal.read(whole)), Found(), random.Random(0)
        while found.kills < kills:
            measure(sweep, folder / f"run-{found.runs}", scratch, expected, found, kills, rng, is_race=given.race)
        time.sleep(1)
        ours, left = alive(scratch), len([*scratch.iterdir()])
        orphans = [orphaned(sweep, folder / f"orphans-{number}", scratch) for number in range(ORPHANS)]
    had, lived = (", ".join(map(str, each)) for each in zip(*orphans, strict=True))
    print(f"the parent alone was killed {ORPHANS} times, with {had} processes; {ORPHANED_S:g} s later {lived} lived")
    print(
        f"{found.kills} kills in {found.runs} runs: {found.unreadable} journals could not be read, {found.twice} "
        f"processes of cases were measured twice, {found.same} of {found.runs} runs have the cases and statuses of an "
        f"undisturbed one ({len(expected)}); {len(ours)} processes and {left} temporary files are left"
    )


def measure(
    sweep: Path,
    run: Path,
    scratch: Path,
    expected: Counter[Key],
    found: Found,
    kills: int,
    rng: random.Random,
    *,
    is_race: bool,
) -> None:
    """Begin a run again and again, and kill it, until all of its cases are measured; then let it end."""
    while found.kills < kills:
        process = begun(sweep, run, scratch)
        try:
            process.wait(rng.uniform(LEAST_S, MOST_S) * (2 if is_race else 1))
            break
        except subprocess.TimeoutExpired:
            kill(process)
        found.kills += 1
        try:
            measured = keys(journal.read(run)) if (run / JOURNAL).exists() else Counter()
        except Exception as error:
            found.unreadable += 1
            print(f"kill {found.kills}: {type(error).__name__}: {error}")
            continue
        found.twice += measured.total() - len(measured)
        if found.kills % 10 == 0:
            print(f"{found.kills} kills, {len(measured)} of {len(expected)} cases in {run.name}", flush=True)
        if len(measured) == len(expected) and not is_race:
            break  # a further kill would find nothing at work
    begun(sweep, run, scratch).wait()  # what the last kill left out
    measured = keys(journal.read(run))
    found.runs += 1
    found.twice += measured.total() - len(measured)
    if is_race:
        table = SavedRun(run).table
        named = {*table.loc[table["standing"].isin([FASTEST, NAMED]), "num_tokens"]}
        cases = {key[:2] for key in measured} == {key[:2] for key in expected}
        print(
            f"{run.name}: {len(measured)} processes of cases, {len(expected)} undisturbed; {len(named)} points answered"
        )
        found.same += cases and len(named) == table["num_tokens"].nunique()
    else:
        found.same += measured == expected


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
    main()
