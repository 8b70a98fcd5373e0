"""A busy process on every core: `python -m tests.drills.neighbour`.

Runs a small sweep on all cores, quiet and beside a process that keeps a core busy, and counts rows that are marked.
"""

import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pandas as pd

import bench
from bench.engine.run import run
from bench.plan.case import CASE_COLUMNS
from bench.plan.sweep import load_sweep
from bench.show.terminal.flags import FLAGGED_SHARE
from bench.store.machine import visible_cores

BUSY = "while True: pass"
AFFECTED = 1.10
"""A row is affected where its median grew by more than this."""


def measured(threads: int, *, neighbour: bool) -> pd.DataFrame:
    """Return the rows of a sweep on so many threads, measured alone or beside a busy process."""
    sweep = load_sweep(
        "article",
        threads=threads,
        implementations=("eager", "sdpa", "online", "manual"),
        control=False,
        overrides={"num_tokens": [50, 100, 197], "num_heads": [1, 4]},
        effort={"processes": 2, "budget_s": 4, "target": 0.001},
    )
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if neighbour:
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(busy.kill)
        list(run(sweep, folder))
        return bench.load(Path(folder))


def _marked(table: pd.DataFrame) -> int:
    return int((table["flagged_share"] >= FLAGGED_SHARE).sum())


def main() -> None:
    """Print, for one thread and for all, how many rows were affected, and how many of those were marked."""
    for threads in (1, visible_cores()):
        quiet, busy = measured(threads, neighbour=False), measured(threads, neighbour=True)
        both = quiet.merge(busy, on=list(CASE_COLUMNS), suffixes=("_quiet", "_busy"))
        affected = both[both["latency_s_busy"] > AFFECTED * both["latency_s_quiet"]]
        marked = (affected["flagged_share_busy"] >= FLAGGED_SHARE).sum()
        slower = (both["latency_s_busy"] / both["latency_s_quiet"]).median()
        print(
            f"{threads} thread(s): {_marked(quiet)} of {len(quiet)} quiet rows marked; "
            f"beside a busy process {len(affected)} of {len(both)} rows affected (median {slower:.2f}x the time), "
            f"{marked} of them marked, {_marked(busy)} marked in all",
            flush=True,
        )


if __name__ == "__main__":
    main()
