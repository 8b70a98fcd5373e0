"""Planted copies: sdpa under seven names, some with 3 and 10 % more work, in many runs.

python -m tests.drills.planted DIR [RUNS]     measures the runs, or goes on with them, and says how often each is named,
                                              and how often each is called slower
"""

import dataclasses
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from bench.analyse.analysed_run import load
from bench.analyse.standing import FASTEST, NAMED
from bench.engine.run import run
from bench.plan.case import POINT_COLUMNS
from bench.plan.sweep import Request, load_sweep
from bench.plan.verdicts import SLOWER
from tests.planted import SHARES

RUNS, WITHIN_S = 20, 60.0
NAMES = {f"tests.planted:{name}": share for name, share in SHARES.items()}
POINTS = {"num_tokens": [50, 100], "num_heads": [3, 6]}
VARYING = (*POINTS,)


def main(folder: str, runs: int = RUNS) -> None:
    """Measure the runs, and print what their standings and bounds say of the names."""
    tables = [_measured(Path(folder) / f"run-{number:02}") for number in range(runs)]
    rows = pd.concat(table.assign(run=number) for number, table in enumerate(tables))
    rows["share"] = rows["implementation"].map(NAMES)
    rows["log"] = -np.log(rows["speedup"].astype(float))
    # names with the same work have the same time; what more work costs is the mean of all runs
    rows["mean"] = rows.groupby([*VARYING, "share"])["log"].transform("mean")
    least = rows[rows["share"] == 0].groupby([*VARYING])["mean"].first().rename("least")
    rows = rows.join(least, on=[*VARYING])
    rows["true"] = np.maximum(np.exp((rows["mean"] - rows["least"]).to_numpy(dtype=np.float64)), 1.0)
    for share, own in rows.groupby("share"):
        counts = Counter(own["standing"])
        what = "found" if share else "blamed"
        print(
            f"{share:4.0%} more work ({own['true'].min() - 1:.1%} to {own['true'].max() - 1:.1%} more time): "
            f"{what} {counts[SLOWER]} of {len(own)} rows, {dict(counts)}"
        )
    chosen = rows[rows["standing"].isin([FASTEST, NAMED])]
    fastest = rows[rows["standing"] == FASTEST]
    wrong = fastest[fastest["share"] > 0]
    print(f"points {len(chosen)}; named with more work {int((chosen['share'] > 0).sum())}")
    print(f"fastest {len(fastest)}, of these with more work {len(wrong)}")
    _print_broken("upper bounds of the named", chosen, chosen["slowdown_high"] < chosen["true"] - 1e-9)
    _print_broken("upper bounds of all rows", rows, rows["slowdown_high"] < rows["true"] - 1e-9)
    _print_broken("lower bounds of all rows", rows, rows["slowdown_low"] > rows["true"] + 1e-9)
    print(f"bound of the named: median {chosen['slowdown_high'].astype(float).median() - 1:.1%}")


def _measured(folder: Path) -> pd.DataFrame:
    sweep = load_sweep(
        Request(
            "quick",
            threads=1,
            overrides={"dtype": ["float32"], "batch": [8], "channels": [384], **POINTS},
            effort={"within_s": WITHIN_S},
            product=True,
        )
    )
    names = tuple(NAMES)
    list(run(dataclasses.replace(sweep, name="planted", implementations=names, baseline=names[0]), folder))
    return load(folder)


def _print_broken(what: str, rows: pd.DataFrame, broken: "pd.Series[bool]") -> None:
    points = rows.loc[broken, ["run", *POINT_COLUMNS]].drop_duplicates()
    print(f"{what}: broken in {int(broken.sum())} of {len(rows)} rows, at {len(points)} points")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
