"""The same decision by several tools in the same time: `python -m tests.drills.peers FILE SECONDS [RUNS]`.

Five implementations at three shapes, in SECONDS together, RUNS times in random order: this suite, torch's Timer (of
torch.utils.benchmark, whose Compare prints it), pytest-benchmark, and a loop of timeit. Each names one at each shape:
this suite by its own word, the others by what their tables are ordered by. `python -m tests.drills.peers FILE truth`
measures the truth, a long run of equal shares. All run with the memory settings of this suite.

Appends what it measures to FILE, a CSV file, and prints what is there: how often each tool names the fastest, and what
its choice costs over that, its regret.
"""

import json
import os
import random
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
from bench.engine.variables import environment
from bench.plan.sweep import Effort, Sweep
from tests.make.points import point

SHAPES = ((13, 100, 64, 4), (8, 50, 384, 6), (8, 197, 384, 6))
COLUMNS = ("batch", "num_tokens", "channels", "num_heads")
NAMES = ("eager", "sdpa", "compiled_eager", "compiled_sdpa", "mha")

POINTS = {str(shape): point(**dict(zip(COLUMNS, shape, strict=True))) for shape in SHAPES}

TRUTH = Effort(processes=8, budget_s=80.0)
"""The long run: ten seconds of rounds in each of eight processes at each shape."""

Named = dict[str, str]
"""The implementation that is named at each shape."""

SETUP = """
import time
begin_s = time.perf_counter()
import torch
from bench.measure import subjects, workload
from tests.make.points import point

torch.set_num_threads(1)
calls, works = {{}}, {{}}
for shape, columns in {columns}.items():
    work = works[shape] = workload.make(point(**columns))
    for name in {names}:
        subject = subjects.subject(work, name)
        calls[shape, name] = subjects.step(subject, work, subjects.Inputs(work))
with torch.inference_mode():
    for call in calls.values():
        call()
each_s = max(0.1, ({seconds} - (time.perf_counter() - begin_s)) / len(calls))
"""

TIMER = """
import json
from torch.utils.benchmark import Timer

with torch.inference_mode():
    timers = {{key: Timer("call()", globals={{"call": call}}) for key, call in calls.items()}}
    times = [[*key, each.blocked_autorange(min_run_time=each_s).median] for key, each in timers.items()]
print(json.dumps(times))
"""

PYTEST = """
import pytest

@pytest.mark.benchmark(max_time=each_s)
@pytest.mark.parametrize(("shape", "name"), [*calls])
def test_time(benchmark, shape, name):
    with torch.inference_mode():
        benchmark(calls[shape, name])
"""

LOOP = """
import json
import timeit

def least(call):
    timer, times, end_s = timeit.Timer(call), [], time.perf_counter() + each_s
    number, _ = timer.autorange()
    while not times or time.perf_counter() < end_s:
        times.append(timer.timeit(number) / number)
    return min(times)

with torch.inference_mode():
    print(json.dumps([[*key, least(call)] for key, call in calls.items()]))
"""


def suite(seconds: float, folder: Path) -> Named:
    """Return the implementation that this suite's race names."""
    effort = Effort(processes=2, budget_s=4.0, race=True, within_s=seconds)
    list(run(Sweep("peers", (*POINTS.values(),), NAMES, NAMES[0], effort, control=True), folder / "run"))
    table = _by_shape(bench.load(folder / "run"))
    return {shape: str(table[shape]["rank"].idxmin()) for shape in POINTS}


def timer(seconds: float, folder: Path) -> Named:
    """Return the least medians by torch.utils.benchmark."""
    return _least(json.loads(_python(_script(folder / "timer.py", seconds, TIMER))))


def pytest_benchmark(seconds: float, folder: Path) -> Named:
    """Return the least minima by pytest-benchmark, by which it orders its table."""
    result = folder / "result.json"
    script = _script(folder / "test_time.py", seconds, PYTEST)
    _python("-m", "pytest", script, "-q", "-p", "no:cacheprovider", f"--benchmark-json={result}")
    found = json.loads(result.read_text())["benchmarks"]
    return _least([(each["params"]["shape"], each["params"]["name"], each["stats"]["min"]) for each in found])


def loop(seconds: float, folder: Path) -> Named:
    """Return the least times of timeit."""
    return _least(json.loads(_python(_script(folder / "loop.py", seconds, LOOP))))


TOOLS: dict[str, Callable[[float, Path], Named]] = {
    "attention-bench": suite,
    "torch.utils.benchmark": timer,
    "pytest-benchmark": pytest_benchmark,
    "timeit": loop,
}


def truth(file: Path) -> None:
    """Append the log ratios of all implementations' times to the fastest's, from a long run."""
    with tempfile.TemporaryDirectory() as folder:
        list(run(Sweep("truth", (*POINTS.values(),), NAMES, NAMES[0], TRUTH, control=True), Path(folder) / "run"))
        table = _by_shape(bench.load(Path(folder) / "run"))
    for shape, rows in table.items():
        logs = pd.Series(-np.log(rows["speedup"].astype(float)), rows.index)
        _append(file, {"tool": "truth", "shape": shape, "named": logs.idxmin(), **(logs - logs.min())[[*NAMES]]})


def _by_shape(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each shape by the names of implementations."""
    keys = table[[*COLUMNS]].apply(lambda row: str(tuple(map(int, row))), axis=1)
    return {shape: table[keys == shape].set_index("implementation") for shape in POINTS}


def _script(path: Path, seconds: float, text: str) -> Path:
    columns = {shape: {name: getattr(at, name) for name in COLUMNS} for shape, at in POINTS.items()}
    path.write_text((SETUP + text).format(columns=columns, names=NAMES, seconds=seconds), encoding="utf-8")
    return path


def _python(*words: object) -> str:
    """Return what Python prints, with the memory settings and one thread of this suite's processes."""
    at = next(iter(POINTS.values()))
    with tempfile.TemporaryDirectory() as cache:
        variables = environment(at.allocator, at.threads, Path(cache)) | {"PYTHONPATH": str(Path.cwd())}
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{os.fspath(str(words[0]))} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def _least(times: list[tuple[str, str, float]]) -> Named:
    return {shape: min((s, name) for at, name, s in times if at == shape)[1] for shape in POINTS}


def _append(file: Path, row: dict[str, object]) -> None:
    columns = ("tool", "seconds", "shape", "named", "took_s", *NAMES)
    table = pd.DataFrame([{name: row.get(name) for name in columns}])
    table.to_csv(file, mode="a", header=not file.exists(), index=False)


def show(file: Path) -> None:
    """Print a line for each tool and time: how often it is right, and its regret."""
    table = pd.read_csv(file)
    costs = table[table["tool"] == "truth"].groupby("shape")[[*NAMES]].mean()
    for shape, logs in costs.iterrows():
        print(f"{shape}: " + ", ".join(f"{name} +{np.expm1(log):.1%}" for name, log in logs.sort_values().items()))
    others = table[table["tool"] != "truth"]
    for (seconds, tool), rows in others.groupby(["seconds", "tool"]):
        regret = np.expm1([costs.loc[shape, name] for shape, name in zip(rows["shape"], rows["named"], strict=True)])
        print(
            f"{seconds:.0f} s, {tool}: {len(rows)} choices, the fastest in {(regret == 0).mean():.0%}, within 1 % in "
            f"{(regret <= 0.01).mean():.0%}; regret {regret.mean():.2%}, at worst {regret.max():.1%}; "
            f"took {rows['took_s'].mean():.0f} s"
        )


def main(file: str, seconds: str = "", runs: str = "10") -> None:
    """Measure the truth, or take turns with all tools; then print the results."""
    path = Path(file)
    if seconds == "truth":
        truth(path)
    for _ in range(int(runs) if seconds not in ("", "truth") else 0):
        for name in random.sample([*TOOLS], len(TOOLS)):
            begin = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                named = TOOLS[name](float(seconds), Path(folder))
            took_s = time.perf_counter() - begin
            for shape, implementation in named.items():
                row = {"tool": name, "seconds": float(seconds), "shape": shape, "named": implementation}
                _append(path, {**row, "took_s": took_s})
    if path.exists():
        show(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
