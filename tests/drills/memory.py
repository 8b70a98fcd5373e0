"""Memory as rows tell it, beside what it should be: `python -m tests.drills.memory`."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import bench
from bench.engine.run import run
from bench.plan.sweep import load_sweep

HELD_BYTES = 2 << 30


def measured(overrides: dict[str, object], *implementations: str) -> pd.DataFrame:
    """Return the rows of a sweep that spends little on time and looks at memory from both sides."""
    sweep = load_sweep(
        "vit",
        threads=1,
        implementations=implementations,
        control=False,
        overrides={"dtype": "float32", "num_heads": 6, "channels": 384, "batch": 1, "mode": "inference", **overrides},
        effort={"processes": 1, "budget_s": 0.1, "check_memory": True},
    )
    with tempfile.TemporaryDirectory() as folder:
        list(run(sweep, folder))
        return bench.load(Path(folder))


def main() -> None:
    """Print exponents in tokens, both views of each peak, what a parent's memory changes, what autograd keeps."""
    table = measured({"num_tokens": [512, 1024, 2048, 4096]}, "eager", "online", "sdpa")
    for name, rows in table.groupby("implementation"):
        slope = np.polyfit(np.log(rows["num_tokens"].astype(float)), np.log(rows["peak_bytes"].astype(float)), 1)[0]
        pairs = ", ".join(
            f"{own / 2**20:.1f} against {seen / 2**20:.1f} MiB"
            for own, seen in zip(rows["peak_bytes"], rows["system_peak_bytes"], strict=True)
        )
        print(f"{name}: exponent in tokens {slope:.3f}; allocator against system: {pairs}")
    alone = measured({"num_tokens": [577]}, "eager", "sdpa")
    held = np.ones(HELD_BYTES, dtype=np.uint8)
    beside = measured({"num_tokens": [577]}, "eager", "sdpa")
    del held
    for name in ("peak_bytes", "system_peak_bytes"):
        print(f"{name}: {alone[name].tolist()} alone, {beside[name].tolist()} with a parent that holds 2 GiB")
    kept = measured({"num_tokens": [1024], "mode": ["forward", "train"]}, "eager", "manual", "online", "sdpa")
    for mode, rows in kept.groupby("mode"):
        saved = rows.set_index("implementation")["saved_bytes"]
        said = ", ".join(f"{name} {size / 2**20:.1f} MiB ({size / saved['sdpa']:.2f}x)" for name, size in saved.items())
        print(f"kept for backward in {mode}, N = 1024, 384 channels: {said}")


if __name__ == "__main__":
    main()
