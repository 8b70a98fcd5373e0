"""How the suite copes with many cases: `python -m tests.drills.scale FOLDER CASES [STEP…]`.

Makes two runs of so many cases, whose records are those of a published run at points of their own, and prints for each
step its seconds, its processor seconds and its peak memory. The steps are those of STEPS; each is a process of its own.
A run that stands in FOLDER already is used again.
"""

import dataclasses
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import cli
from bench.analyse.rows import grouped
from bench.engine.run_folder import RunFolder
from bench.plan.case import Case, Point
from bench.plan.sweep import Sweep
from bench.store import environment, journal, plan, record
from bench.store.environment import Environment
from bench.store.journal import JOURNAL
from bench.store.record import Record
from bench.store.saved_run import SavedRun
from tests.make.points import vit_s

PUBLISHED = SavedRun(Path(__file__).parents[2] / "results" / "published" / "equal-shares-xeon-2core")
"""A run that measured all of its cases equally often."""

RUNS = ("a", "b")

APPENDED = 200
"""The replicates that are appended to tell the cost of a further one."""

SMALL = 1_000
"""The cases of the run beside which the cost of a further record is measured."""


def templates() -> list[list[Record]]:
    """Return the records of each published point."""
    return [*grouped(PUBLISHED.records, lambda each: each.case.point).values()]


def here() -> Environment:
    """Return the environment of the published run."""
    assert PUBLISHED.environment
    return PUBLISHED.environment


def at(point: Point, records: list[Record], **changes: Any) -> list[Record]:
    """Return records as if they were of another point."""
    return [dataclasses.replace(each, case=Case(point, each.case.implementation), **changes) for each in records]


def make(folder: Path, cases: int, seed: int) -> None:
    """Make a run of so many cases, whose points differ in tokens and batch."""
    published = PUBLISHED.planned
    assert published
    count = cases // len(published.implementations)
    points = tuple(vit_s(num_tokens=1 + number % 2_000, batch=1 + number // 2_000) for number in range(count))
    folder.mkdir(parents=True)
    plan.save(dataclasses.replace(published, name="scale", points=points), folder)
    environment.save(here(), folder)
    draw, groups = random.Random(seed), templates()
    with (folder / JOURNAL).open("ab") as file:
        for point in points:
            file.writelines(record.encode_line(each) + b"\n" for each in at(point, draw.choice(groups)))


def opened(folder: Path) -> tuple[Sweep, RunFolder]:
    """Return the plan of a made run, and its folder for a process that goes on with it."""
    stored = plan.load(folder)
    assert stored
    run_folder = RunFolder(stored, folder)
    run_folder.prepare()
    run_folder.open(here())
    return stored, run_folder


def step_make(folder: Path, cases: int) -> None:
    """Make the runs that are not there."""
    for seed, name in enumerate(RUNS):
        if not (folder / name).exists():
            make(folder / name, cases, seed)
    size = (folder / RUNS[0] / JOURNAL).stat().st_size
    print(f"  {size / 1e6:,.0f} MB, {size / cases:,.0f} bytes a case")


def step_read(folder: Path, _cases: int) -> None:
    """Check every line of the journal, and read records with their samples, one after the other."""
    begin = time.perf_counter()
    contents = journal.scan(folder / RUNS[0])
    middle = time.perf_counter()
    count = sum(len(each.samples.rounds) for each in contents.records[:50_000])
    taken_s = time.perf_counter() - middle
    print(f"  {len(contents.records):,} lines in {middle - begin:.1f} s; {1e6 * taken_s / count:.2f} µs a sample")


def step_resume(folder: Path, cases: int) -> None:
    """Read plan and journal, and decide what is missing."""
    sweep, run_folder = opened(folder / RUNS[0])
    for processes in (sweep.effort.processes, sweep.effort.processes + 1):
        missing = sum(len(run_folder.records.missing(point, processes)) for point in sweep.points)
        print(f"  missing in {processes} processes: {missing:,} of {cases:,} cases")


def step_summarise(folder: Path, _cases: int) -> None:
    """Make the table anew."""
    cli.main(["summarise", str(folder / RUNS[0])])


def step_show(folder: Path, _cases: int) -> None:
    """Print the most important points."""
    cli.main(["show", "--top", "50", str(folder / RUNS[0])])


def step_compare(folder: Path, _cases: int) -> None:
    """Compare the runs."""
    cli.main(["compare", *(str(folder / name) for name in RUNS)])


def step_append(folder: Path, cases: int) -> None:
    """Tell the cost of a further replicate, fsynced, in a small run and in a large one."""
    for count in (SMALL, cases):
        with tempfile.TemporaryDirectory(dir=folder) as copy:
            make(Path(copy) / "run", count, 7)
            os.sync()  # or the first record would pay for the run
            taken_s = [*_appended(Path(copy) / "run")]
        print(f"  at {count:,} cases: {1e3 * np.mean(taken_s):.2f} ms, median {1e3 * np.median(taken_s):.2f} ms")


def _appended(folder: Path) -> Iterator[float]:
    """Append replicates, and yield the seconds of each."""
    (sweep, run_folder), groups = opened(folder), templates()
    for number, point in enumerate(sweep.points[:APPENDED]):
        replicate = [each for each in groups[number % len(groups)] if each.process == 0]
        records = at(point, replicate, process=sweep.effort.processes)
        begin = time.perf_counter()
        run_folder.records.keep(records)
        yield time.perf_counter() - begin


TRIED = (step_make, step_read, step_resume, step_summarise, step_show, step_compare, step_append)
STEPS: dict[str, Callable[[Path, int], None]] = {step.__name__.removeprefix("step_"): step for step in TRIED}
HERE = "--here"
"""The last word of a command that does its step in its own process."""


def main(folder: str, cases: str, *steps: str) -> None:
    """Run the steps, each in a process of its own, or one here."""
    if HERE in steps:
        STEPS[steps[0]](Path(folder), int(cases))
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in steps or STEPS:
        begin = time.perf_counter()
        with (Path(folder) / f"{name}.log").open("w") as file:
            command = [sys.executable, "-m", "tests.drills.scale", folder, cases, name, HERE]
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
        print(
            f"{name}: {time.perf_counter() - begin:.1f} s, {used.ru_utime + used.ru_stime:.1f} processor s, "
            f"{used.ru_maxrss / 1024:,.0f} MB at most{f', exit status {status >> 8}' if status else ''}",
            flush=True,
        )
        if name not in ("show", "compare"):
            print(Path(file.name).read_text(encoding="utf-8"), end="", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
