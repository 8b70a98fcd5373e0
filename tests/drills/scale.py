"""How the suite copes with many cases: `python -m tests.drills.scale FOLDER CASES [STEP…]`.

Makes two runs of so many cases up, five implementations a point, five processes of 60 samples, and prints for each step
its seconds, its processor seconds and its peak memory. The steps are those of STEPS; each is a process of its own.
A run that stands in FOLDER already is used again.
"""

import argparse
import dataclasses
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench import cli
from bench.analyse import summary
from bench.engine.run_folder import RunFolder
from bench.plan.case import Case, Point
from bench.plan.sweep import Effort, Sweep
from bench.store import environment, journal, plan, record, table
from bench.store.journal import JOURNAL
from bench.store.record import Origin, Record, Samples
from bench.store.saved_run import SavedRun
from tests.make import records
from tests.make.points import vit_s

IMPLEMENTATIONS = ("eager", "manual", "sdpa", "online", "mha")
PROCESSES = 5
SAMPLES = 60
TEMPLATES = 100
"""The points that are made up with samples of their own; all others are like one of them, but for their shapes."""

RUNS = ("a", "b")
APPENDED = 200
"""The replicates that are appended to tell the cost of a further one."""

SUMMARISED = 100
"""The points whose rows are made from the journal, to tell their cost."""

SMALL = 1_000
"""The cases of the run beside which the cost of a further record is measured."""


def points(cases: int) -> tuple[Point, ...]:
    """Return points that differ in tokens and batch."""
    count = cases // len(IMPLEMENTATIONS)
    return tuple(vit_s(num_tokens=1 + number % 2_000, batch=1 + number // 2_000) for number in range(count))


def sweep(cases: int) -> Sweep:
    """Return the sweep of a made-up run."""
    return Sweep("scale", points(cases), IMPLEMENTATIONS, effort=Effort(processes=PROCESSES))


def samples(value_s: float, rng: np.random.Generator) -> Samples:
    """Return samples such as a run takes: of three timings each, with the speed of the machine around them."""
    timings_s = value_s * rng.lognormal(0, 0.05, (SAMPLES, 3))
    return Samples(
        rounds=tuple(range(SAMPLES)),
        timings_s=tuple(map(tuple, timings_s.tolist())),
        switches=tuple(rng.poisson(0.1, SAMPLES).tolist()),
        faults=tuple(rng.poisson(0.1, SAMPLES).tolist()),
        others=tuple(rng.uniform(0, 0.1, SAMPLES).tolist()),
        product_s=tuple((7e-5 * rng.lognormal(0, 0.02, SAMPLES)).tolist()),
        copy_s=tuple((1e-4 * rng.lognormal(0, 0.02, SAMPLES)).tolist()),
    ).rounded()


METRICS = {
    "calls_per_timing": 1,
    "settled": True,
    "products_per_s": 13397.058693722342,
    "copies_per_s": 7522.869588051142,
    "flops": 14492139520,
    "least_bytes": 14852096,
    "ceiling_flops_per_s": 166412917546.5282,
    "ceiling_bytes_per_s": 12325224675.793554,
    "peak_bytes": 35389440,
    "huge_bytes": 111149056,
    "error": 1.757575757575e-07,
    "tolerance": 0.00007096683906662206,
    "kernels": ("aten::addmm", "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::addmm"),
}
"""Metrics such as a run on a CPU reports."""


def templates(seed: int) -> list[list[Record]]:
    """Return the records of some points, which all points share but for their shapes."""
    rng, here = np.random.default_rng(seed), records.environment()
    origin = Origin(here.env_id, here.device_name("cpu"), "2.13.0", "0123456789ab", "2026-01-31T12:00:00+00:00")
    size = len(IMPLEMENTATIONS)
    return [
        [
            Record(
                Case(vit_s(), name),
                process,
                "ok",
                origin,
                samples=samples(5e-3 / (1 + 0.2 * place * rng.lognormal(0, 0.02)), rng),
                metrics=METRICS,
                replicate_size=size,
                seed=int(rng.integers(1 << 32)),
                pid=int(rng.integers(1 << 15)),
            )
            for process in range(PROCESSES)
            for place, name in enumerate(IMPLEMENTATIONS)
        ]
        for _ in range(TEMPLATES)
    ]


def make(folder: Path, cases: int, seed: int) -> None:
    """Make a run up: its plan, its environment, its journal, and its table."""
    folder.mkdir(parents=True)
    planned = sweep(cases)
    plan.save(planned, folder)
    environment.save(records.environment(), folder)
    groups = templates(seed)
    rows_of, rows = [summary.of_records(records, "eager").all_rows() for records in groups], []
    draw = random.Random(seed)
    with (folder / JOURNAL).open("ab") as file:
        for point in planned.points:
            drawn = draw.randrange(TEMPLATES)
            moved = (dataclasses.replace(each, case=Case(point, each.case.implementation)) for each in groups[drawn])
            file.writelines(record.encode_line(each) + b"\n" for each in moved)
            rows += [{**row, **vars(point)} for row in rows_of[drawn]]
    table.save(table.of_rows(rows), folder)


def opened(folder: Path) -> RunFolder:
    """Return a made-up run that goes on."""
    stored = plan.load(folder)
    assert stored
    run_folder = RunFolder(stored, folder)
    run_folder.prepare()
    run_folder.open(records.environment())
    return run_folder


def step_make(folder: Path, cases: int) -> None:
    """Make the runs that are not there."""
    for seed, name in enumerate(RUNS):
        if not (folder / name).exists():
            make(folder / name, cases, seed)
    size, records = (folder / RUNS[0] / JOURNAL).stat().st_size, cases * PROCESSES
    print(f"  {size / 1e6:,.0f} MB, {size / records:,.0f} bytes a record, {size / records / SAMPLES:.1f} a sample")


def step_summarise(folder: Path, _cases: int) -> None:
    """Tell the cost of making the rows of a point from the journal."""
    run_folder = opened(folder / RUNS[0])
    begin, some = time.process_time(), run_folder.sweep.points[:SUMMARISED]
    summary.of_records([record for point in some for record in run_folder.records.of(point)], "eager").all_rows()
    print(f"  {1e3 * (time.process_time() - begin) / len(some):.1f} processor ms a point")
    run_folder.close()


def step_resume(folder: Path, cases: int) -> None:
    """Read plan and journal, and decide what is missing."""
    run_folder = opened(folder / RUNS[0])
    processes = run_folder.sweep.effort.processes
    missing = sum(len(run_folder.records.missing(point, processes)) for point in run_folder.sweep.points)
    more = sum(len(run_folder.records.missing(point, processes + 1)) for point in run_folder.sweep.points)
    print(f"  missing: {missing} cases of {cases}; with one process more {more}")
    run_folder.close()


def step_scan(folder: Path, _cases: int) -> None:
    """Check every line of the journal, and read the table."""
    begin = time.perf_counter()
    contents = journal.scan(folder / RUNS[0])
    middle = time.perf_counter()
    rows = len(table.load(folder / RUNS[0]))
    taken_s = time.perf_counter() - middle
    print(f"  {len(contents.entries):,} lines in {middle - begin:.1f} s; {rows:,} rows in {taken_s:.1f} s")


def step_records(folder: Path, _cases: int) -> None:
    """Read every record with its samples, one after the other."""
    saved = SavedRun(folder / RUNS[0])
    begin = time.perf_counter()
    count = sum(len(record.samples.rounds) for record in map(saved.contents.load, saved.contents.entries[:50_000]))
    taken_s = time.perf_counter() - begin
    print(f"  {count:,} samples, {1e6 * taken_s / max(1, count):.2f} µs a sample")


def step_show(folder: Path, _cases: int) -> None:
    """Print the most important points."""
    cli.main(["show", "--top", "50", str(folder / RUNS[0])])


def step_compare(folder: Path, _cases: int) -> None:
    """Compare the runs."""
    cli.main(["compare", *(str(folder / name) for name in RUNS)])


def step_append(folder: Path, cases: int) -> None:
    """Tell the cost of a further replicate, fsynced, in the run and in a small one."""
    for count in (SMALL, cases):
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            copy = Path(temporary) / "run"
            if count == cases:
                subprocess.run(["cp", "-r", "--reflink=auto", str(folder / RUNS[0]), str(copy)], check=True)
                subprocess.run(["sync", str(copy / JOURNAL)], check=True)  # or the first record would pay for the copy
            else:
                make(copy, count, 7)
            run_folder = opened(copy)
            kept_s, tabulated_s = zip(*_appended(run_folder), strict=True)
            run_folder.close()
            records_s = len(IMPLEMENTATIONS) / float(np.median(kept_s))
            print(
                f"  at {count:,} cases: {1e3 * np.mean(kept_s):.2f} ms a replicate of {len(IMPLEMENTATIONS)}, "
                f"median {1e3 * np.median(kept_s):.2f} ms ({records_s:,.0f} records a second), "
                f"{1e3 * np.mean(tabulated_s):.2f} ms for its rows"
            )


def _appended(run_folder: RunFolder) -> Iterator[tuple[float, float]]:
    """Append replicates, and yield for each the seconds of its records and those of its rows."""
    groups = templates(8)
    for number, point in enumerate(run_folder.sweep.points[:APPENDED]):
        some = groups[number % TEMPLATES][: len(IMPLEMENTATIONS)]
        records = [dataclasses.replace(r, case=Case(point, r.case.implementation), process=PROCESSES) for r in some]
        begin = time.perf_counter()
        run_folder.records.keep(records)
        middle = time.perf_counter()
        run_folder.tabulate()
        yield middle - begin, time.perf_counter() - middle


TRIED = (step_make, step_summarise, step_resume, step_scan, step_records, step_show, step_compare, step_append)
STEPS: dict[str, Callable[[Path, int], None]] = {step.__name__.removeprefix("step_"): step for step in TRIED}


def main() -> None:
    """Run the steps, each in a process of its own, or one here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", type=int)
    parser.add_argument("steps", nargs="*", choices=[[], *STEPS], default=[])
    parser.add_argument("--here", action="store_true", help="in this process")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.steps or STEPS:
        if arguments.here:
            STEPS[name](arguments.folder, arguments.cases)
            continue
        begin = time.perf_counter()
        words = [str(arguments.folder), str(arguments.cases), name, "--here"]
        command = [sys.executable, "-m", "tests.drills.scale", *words]
        log = arguments.folder / f"{name}.log"
        with log.open("w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
            _, code, used = os.wait4(process.pid, 0)
        taken_s = time.perf_counter() - begin
        print(
            f"{name}: {taken_s:.1f} s, {used.ru_utime + used.ru_stime:.1f} processor s, "
            f"{used.ru_maxrss / 1024:,.0f} MB at most{'' if code == 0 else f', exit status {code >> 8}'}",
            flush=True,
        )
        if name not in ("show", "compare"):
            print(log.read_text(encoding="utf-8"), end="", flush=True)


if __name__ == "__main__":
    main()
