"""Thirty shapes in one worker, compiled: `python -m tests.drills.many_shapes`.

torch.compile gives up on a function after eight shapes and runs it eagerly in silence; a sweep must not.
"""

import tempfile
from collections import Counter
from pathlib import Path

import pandas as pd

import bench
from bench.engine.run import run
from bench.plan.sweep import load_sweep

EXHAUSTED = "tests.foreign:exhausted"
SHAPES = {"num_tokens": [5, 16, 17, 33, 50], "num_heads": [1, 2, 4], "channels": [16, 32]}


def measured(implementation: str) -> pd.DataFrame:
    """Return the rows of an implementation at all shapes, by one worker.

    Each has a run of its own, because the limit belongs to the layer's code, which they share.
    """
    sweep = load_sweep(
        "vit",
        threads=1,
        implementations=("eager", implementation),
        control=False,
        overrides={**SHAPES, "batch": 2, "mode": "inference", "dtype": "float32"},
        effort={"processes": 1, "budget_s": 0.1},
    )
    with tempfile.TemporaryDirectory() as folder:
        list(run(sweep, folder))
        table = bench.load(Path(folder))
    return table[table["implementation"] == implementation]


def main() -> None:
    """Print how the rows ended, how many graphs each has, and what was said of the exhausted one."""
    for name in ("compiled_eager", EXHAUSTED):
        rows = measured(name)
        graphs = rows["graphs"].dropna()
        print(
            f"{name}: {dict(Counter(rows['status']))} at {len(rows)} points, "
            f"graphs {graphs.min() if len(graphs) else '-'} to {graphs.max() if len(graphs) else '-'}, "
            f"{rows['latency_s'].notna().sum()} latencies, {rows['speedup'].notna().sum()} speed-ups"
        )
    print(rows["detail"].iloc[0])


if __name__ == "__main__":
    main()
