"""A busy neighbour: `python -m tests.drills.neighbour FOLDER [RUNS]`.

Runs a small sweep quiet, beside a process that keeps a core busy, and beside one that copies memory, in turns. Prints
for each neighbour how many rows have speed-ups within 2 % of the quiet ones, how many are marked, and the others.
Goes on with the runs in the folder.
"""

import math
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pandas as pd

import bench
from bench.engine.run import run
from bench.plan.sweep import load_sweep
from bench.show.terminal.flags import FLAGGED_SHARE
from bench.stats.estimates import ratio
from bench.store import machine

QUIET = "quiet"
NEIGHBOURS = {
    QUIET: "",
    "busy": "while True: pass",
    "copying": "import numpy as np\na = np.ones(1 << 25)\nb = a.copy()\nwhile True: np.copyto(b, a)",
}
"""What each neighbour runs; the arrays of the last one have 256 MiB each."""

NEAR = 0.02

VARIED = ("num_tokens", "num_heads", "implementation")


def measured(folder: Path, threads: int, neighbour: str) -> pd.DataFrame:
    """Return the rows of a sweep on so many threads, measured beside a neighbour into this folder."""
    sweep = load_sweep(
        "article",
        threads=threads,
        allocator=machine.default_allocator(),
        implementations=("eager", "sdpa", "online", "manual"),
        control=False,
        overrides={"num_tokens": [50, 100, 197], "num_heads": [1, 4]},
        effort={"processes": 2, "budget_s": 4},
    )
    with ExitStack() as stack:
        if NEIGHBOURS[neighbour]:
            beside = stack.enter_context(subprocess.Popen([sys.executable, "-c", NEIGHBOURS[neighbour]]))
            stack.callback(beside.kill)
        list(run(sweep, folder))
    return bench.load(folder).set_index(list(VARIED))


def report(quiet: list[pd.DataFrame], beside: list[pd.DataFrame]) -> str:
    """Return how the rows beside a neighbour differ from the quiet ones, of which each has a pair."""
    near, marked, neither = 0, 0, []
    slower = pd.concat([b["latency_s"] / q["latency_s"] for q, b in zip(quiet, beside, strict=True)]).median()
    rows = quiet[0].index[quiet[0]["speedup"].notna() & (quiet[0].index.get_level_values("implementation") != "eager")]
    for row in rows:
        pairs = zip(quiet, beside, strict=True)
        changed = ratio([math.log(b.loc[row, "speedup"] / q.loc[row, "speedup"]) for q, b in pairs])
        is_marked = sum(table.loc[row, "flagged_share"] for table in beside) / len(beside) >= FLAGGED_SHARE
        is_near = abs(changed.value - 1) <= NEAR
        near, marked = near + is_near, marked + is_marked
        if not is_near and not is_marked:
            neither.append(f"{changed.value:.3f}x [{changed.low:.3f}, {changed.high:.3f}]")
    return (
        f"calls take {slower:.2f}x the time; of {len(rows)} rows {near} have speed-ups within {NEAR:.0%} of the quiet "
        f"ones, {marked} are marked, {len(neither)} neither: {', '.join(neither) or '-'}"
    )


def main(folder: str, runs: str = "3") -> None:
    """Print a line for each neighbour, with one thread and with all cores."""
    for threads in (1, machine.visible_cores()):
        tables: dict[str, list[pd.DataFrame]] = {name: [] for name in NEIGHBOURS}
        for number in range(int(runs)):
            for name in random.sample([*NEIGHBOURS], len(NEIGHBOURS)):
                tables[name].append(measured(Path(folder) / f"{name}-{threads}-{number}", threads, name))
        marked = sum(int((table["flagged_share"] >= FLAGGED_SHARE).sum()) for table in tables[QUIET])
        print(f"{threads} thread(s), quiet: {marked} of {sum(map(len, tables[QUIET]))} rows marked")
        for name in (name for name in NEIGHBOURS if name != QUIET):
            print(f"{threads} thread(s), {name}: {report(tables[QUIET], tables[name])}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
