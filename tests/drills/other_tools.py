"""The same ratio by several tools in the same minutes: `python -m tests.drills.other_tools FILE [RUNS]`.

Measures sdpa against eager at two shapes with pytest-benchmark, with torch's Timer, with pyperf and with this suite, in
random order, RUNS times. Prints for each tool the ratios, what two runs differ by, and the seconds of a run.
Appends what it measures to FILE, a CSV file, and prints what is there. pyperf must be installed; without it a line says
so.
"""

import importlib.util
import itertools
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import bench
from bench.engine.run import run
from bench.plan.sweep import Effort, Sweep
from tests.drills.company import shape

SHAPES = ((13, 100, 64, 4), (8, 197, 384, 6))
NAMES = ("eager", "sdpa")

SECONDS = 5.0
"""The seconds for each function, for the tools that are told."""

SETUP = """
import torch
from bench.measure import workload
from tests.drills.company import shape

torch.set_num_threads(1)
work = workload.make(shape{shape})
calls = {{name: workload.step(workload.subject(work, name), work) for name in {names}}}
"""

TIMER = """
import json
from torch.utils.benchmark import Timer

with work.gradient_mode():
    timers = {{name: Timer("call()", globals={{"call": call}}) for name, call in calls.items()}}
    times = {{name: each.blocked_autorange(min_run_time={seconds}).median for name, each in timers.items()}}
print(json.dumps(times))
"""

PYTEST = """
import pytest

@pytest.mark.parametrize("name", {names})
def test_time(benchmark, name):
    with work.gradient_mode():
        benchmark(calls[name])
"""

PYPERF = """
import pyperf

runner = pyperf.Runner()
with work.gradient_mode():
    for name, call in calls.items():
        runner.bench_func(name, call)
"""


def suite(shape_of: tuple[int, ...], folder: Path) -> float:
    """Return the ratio by this suite."""
    effort = Effort(processes=4, budget_s=SECONDS * len(NAMES))
    list(run(Sweep("tools", (shape(*shape_of),), NAMES, NAMES[0], effort), folder / "run"))
    table = bench.load(folder / "run")
    return float(table["speedup"][table["implementation"] == "sdpa"].item())


def timer(shape_of: tuple[int, ...], folder: Path) -> float:
    """Return the ratio of medians by torch.utils.benchmark."""
    return _ratio(json.loads(_python(_script(folder / "timer.py", shape_of, TIMER))))


def pytest_benchmark(shape_of: tuple[int, ...], folder: Path) -> float:
    """Return the ratio of medians by pytest-benchmark."""
    result = folder / "result.json"
    options = ["-q", "-p", "no:cacheprovider", f"--benchmark-json={result}", f"--benchmark-max-time={SECONDS}"]
    _python("-m", "pytest", _script(folder / "test_time.py", shape_of, PYTEST), *options)
    times = {each["params"]["name"]: each["stats"]["median"] for each in json.loads(result.read_text())["benchmarks"]}
    return _ratio(times)


def pyperf(shape_of: tuple[int, ...], folder: Path) -> float:
    """Return the ratio of means by pyperf, with its option --fast."""
    result = folder / "result.json"
    _python(_script(folder / "perf.py", shape_of, PYPERF), "--fast", "-q", "--inherit-environ=PYTHONPATH", "-o", result)
    times = {}
    for each in json.loads(result.read_text())["benchmarks"]:
        values = [value for one in each["runs"] for value in one.get("values", [])]
        times[each.get("metadata", {}).get("name", NAMES[0])] = statistics.mean(values)
    return _ratio(times)


TOOLS: dict[str, Callable[[tuple[int, ...], Path], float]] = {
    "pytest-benchmark": pytest_benchmark,
    "torch Timer": timer,
    "pyperf --fast": pyperf,
    "this suite": suite,
}


def _script(path: Path, shape_of: tuple[int, ...], text: str) -> Path:
    path.write_text((SETUP + text).format(shape=shape_of, names=NAMES, seconds=SECONDS), encoding="utf-8")
    return path


def _python(*words: object) -> str:
    variables = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout


def _ratio(times_s: dict[str, float]) -> float:
    return times_s["eager"] / times_s["sdpa"]


def main(file: str, runs: str = "10") -> None:
    """Measure in turns and print a line for each tool and shape."""
    tools = dict(TOOLS)
    if importlib.util.find_spec("pyperf") is None:
        print("pyperf is not installed, so it is left out")
        del tools["pyperf --fast"]
    pairs = [*itertools.product(tools, SHAPES)]
    for _ in range(int(runs)):
        for name, shape_of in random.sample(pairs, len(pairs)):
            begin = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                log = math.log(tools[name](shape_of, Path(folder)))
            row = {"tool": name, "shape": str(shape_of), "log_ratio": log, "run_s": time.perf_counter() - begin}
            pd.DataFrame([row]).to_csv(file, mode="a", header=not Path(file).exists(), index=False)
    for (tool, at), rows in pd.read_csv(file).groupby(["tool", "shape"]):
        logs = rows["log_ratio"]
        apart = [abs(one - other) for one, other in itertools.combinations(logs, 2)] or [math.nan]
        print(
            f"{tool}, (B, N, C, H) = {at}: sdpa {math.exp(logs.median()):.3f}x "
            f"[{math.exp(logs.min()):.3f} to {math.exp(logs.max()):.3f}] of {len(logs)} runs; two runs differ by "
            f"{np.median(apart):.1%}, 95th percentile {np.percentile(apart, 95):.1%}; "
            f"{rows['run_s'].mean():.0f} s a run",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
