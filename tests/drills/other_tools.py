"""The same decision by several tools in the same minutes: `python -m tests.drills.other_tools FILE [RUNS]`.

Measures four implementations at three shapes with pytest-benchmark, with torch's Timer, with pyperf and with this
suite, in random order, RUNS times. Prints for each tool the ratio of two implementations, what two runs differ by, and
how often a run names one that takes at most 3 % longer than the fastest: this suite by its own word, the others by the
least time. The fastest is that of all runs of the tool together.
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
from tests.make.points import point

SHAPES = ((13, 100, 64, 4), (8, 50, 384, 6), (8, 197, 384, 6))
COLUMNS = ("batch", "num_tokens", "channels", "num_heads")
NAMES = ("eager", "sdpa", "compiled_sdpa", "mha")

SECONDS = 3.0
"""The seconds for each function, for the tools that take a time."""

LOSS = 0.03

Result = tuple[str, dict[str, float]]
"""The implementation that a run names, and the logarithms of times relative to the first one's."""

SETUP = """
import torch
from bench.measure import workload
from tests.make.points import point

torch.set_num_threads(1)
work = workload.make(point(**{columns}))
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


def suite(shape_of: tuple[int, ...], folder: Path) -> Result:
    """Return what this suite's race names."""
    effort = Effort(processes=2, budget_s=4.0, race=True)
    at = point(**_columns(shape_of))
    list(run(Sweep("tools", (at,), NAMES, NAMES[0], effort, control=True), folder / "run"))
    table = bench.load(folder / "run").set_index("implementation")
    return str(table["rank"].idxmin()), dict(zip(table.index, -np.log(table["speedup"].astype(float)), strict=True))


def timer(shape_of: tuple[int, ...], folder: Path) -> Result:
    """Return the least median by torch.utils.benchmark."""
    return _least(json.loads(_python(_script(folder / "timer.py", shape_of, TIMER))))


def pytest_benchmark(shape_of: tuple[int, ...], folder: Path) -> Result:
    """Return the least median by pytest-benchmark."""
    result = folder / "result.json"
    options = ["-q", "-p", "no:cacheprovider", f"--benchmark-json={result}", f"--benchmark-max-time={SECONDS}"]
    _python("-m", "pytest", _script(folder / "test_time.py", shape_of, PYTEST), *options)
    runs = json.loads(result.read_text())["benchmarks"]
    return _least({each["params"]["name"]: each["stats"]["median"] for each in runs})


def pyperf(shape_of: tuple[int, ...], folder: Path) -> Result:
    """Return the least mean by pyperf, with its option --fast."""
    result = folder / "result.json"
    _python(_script(folder / "perf.py", shape_of, PYPERF), "--fast", "-q", "--inherit-environ=PYTHONPATH", "-o", result)
    times = {}
    for each in json.loads(result.read_text())["benchmarks"]:
        values = [value for one in each["runs"] for value in one.get("values", [])]
        times[each.get("metadata", {}).get("name", NAMES[0])] = statistics.mean(values)
    return _least(times)


TOOLS: dict[str, Callable[[tuple[int, ...], Path], Result]] = {
    "pytest-benchmark": pytest_benchmark,
    "torch Timer": timer,
    "pyperf --fast": pyperf,
    "this suite": suite,
}


def _columns(shape_of: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(COLUMNS, shape_of, strict=True))


def _script(path: Path, shape_of: tuple[int, ...], text: str) -> Path:
    script = (SETUP + text).format(columns=_columns(shape_of), names=NAMES, seconds=SECONDS)
    path.write_text(script, encoding="utf-8")
    return path


def _python(*words: object) -> str:
    variables = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout


def _least(times_s: dict[str, float]) -> Result:
    return min(times_s, key=times_s.__getitem__), {name: math.log(times_s[name] / times_s[NAMES[0]]) for name in NAMES}


def _named(rows: pd.DataFrame) -> str:
    """Return how often a run names one that is fast enough, by the mean of all runs of the tool."""
    loss = np.expm1((means := rows[[*NAMES]].mean()) - means.min())
    of_runs = loss[rows["named"]]
    return f"names one within {LOSS:.0%} in {(of_runs <= LOSS).mean():.0%} of runs, at worst {of_runs.max():.1%}"


def main(file: str, runs: str = "10", *names: str) -> None:
    """Measure in turns with all tools, or those that are named, and print a line for each tool and shape."""
    tools = {name: TOOLS[name] for name in names or TOOLS}
    if "pyperf --fast" in tools and importlib.util.find_spec("pyperf") is None:
        print("pyperf is not installed, so it is left out")
        del tools["pyperf --fast"]
    pairs = [*itertools.product(tools, SHAPES)]
    for _ in range(int(runs)):
        for name, shape_of in random.sample(pairs, len(pairs)):
            begin = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                named, logs = tools[name](shape_of, Path(folder))
            row = {"tool": name, "shape": str(shape_of), "run_s": time.perf_counter() - begin, "named": named}
            pd.DataFrame([row | {key: logs[key] for key in NAMES}]).to_csv(
                file, mode="a", header=not Path(file).exists(), index=False
            )
    for (tool, at), rows in pd.read_csv(file).groupby(["tool", "shape"]):
        logs_of = -rows[NAMES[1]]
        distances = [abs(one - other) for one, other in itertools.combinations(logs_of, 2)] or [math.nan]
        print(
            f"{tool}, (B, N, C, H) = {at}: {NAMES[1]} {math.exp(logs_of.median()):.3f}x "
            f"[{math.exp(logs_of.min()):.3f} to {math.exp(logs_of.max()):.3f}] of {len(rows)} runs; two runs differ by "
            f"{np.median(distances):.1%}, 95th percentile {np.percentile(distances, 95):.1%}; "
            f"{rows['run_s'].mean():.0f} s a run; {_named(rows)}",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
