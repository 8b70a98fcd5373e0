"""A/A: eager against a copy of itself, many runs of one point: `python -m tests.drills.twins [RUNS]`."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import bench
from bench.engine.run import run
from bench.plan.sweep import load_sweep

RUNS = 20
PROCESSES = 5
TWIN = "tests.foreign:twin"
POINT = {"num_tokens": 197, "channels": 192, "num_heads": 3}


def main(runs: int = RUNS) -> None:
    """Print each run's ratio with its interval, then their spread and how many intervals cover a ratio of 1."""
    sweep = load_sweep(
        "article",
        threads=1,
        implementations=("eager", TWIN),
        control=False,
        overrides={**POINT, "token_len": POINT["channels"], "batch": 1},
        effort={"processes": PROCESSES, "budget_s": 5},
    )
    logs, covered = [], 0
    for number in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            list(run(sweep, folder))
            table = bench.load(Path(folder)).set_index("implementation")
        row = table.loc[TWIN]
        logs.append(float(np.log(row["speedup"])))
        covered += bool(row["speedup_low"] <= 1 <= row["speedup_high"])
        print(
            f"{number + 1:>2}/{runs}  ratio {row['speedup']:.4f} [{row['speedup_low']:.4f}, {row['speedup_high']:.4f}] "
            f"latency {row['latency_s'] * 1e3:.2f} ms, {row['rounds']} rounds, {row['flagged_share']:.1%} flagged",
            flush=True,
        )
    print(f"standard deviation of the log ratio {np.std(logs, ddof=1):.3%}, {covered} of {runs} intervals cover 1")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
