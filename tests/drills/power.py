"""What `compare` calls a change: on processes that didn't change, and on work that was planted.

python -m tests.drills.power collect DIR [PROCESSES]     measures the pool of processes, some ten minutes
python -m tests.drills.power resample DIR                tables drawn from that pool: false alarms, power, other rules
python -m tests.drills.power live DIR [PAIRS [PAUSE_S]]  pairs of whole runs of `article` without a change between
"""

import dataclasses
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

import bench
from bench.engine.run import run
from bench.plan.case import Point
from bench.plan.sweep import Sweep, load_sweep
from bench.stats.limits import CHANGED
from bench.stats.occasions import Between
from bench.stats.replicates import paired_log_ratio, ratio
from bench.store import journal
from bench.store.saved_run import SavedRun
from bench.store.selfcheck import between
from bench.store.table import COLUMNS, SCHEMA_VERSION, typed
from tests.planted import PLANTED, key

SHAPES: list[dict[str, int]] = [
    {"batch": 13, "num_tokens": 100, "token_len": 49, "channels": 64, "num_heads": 1},
    {"batch": 13, "num_tokens": 100, "token_len": 49, "channels": 64, "num_heads": 4},
    {"batch": 1, "num_tokens": 197, "token_len": 192, "channels": 192, "num_heads": 3},
]
TWIN, THREE, FIVE = "tests.planted:twin", "tests.planted:three", "tests.planted:five"
PLANTED_SHARE = {THREE: 0.03, FIVE: 0.05}

PROCESSES, ROUNDS = 30, 60
SIDE = 10
"""Processes on each side of a comparison, drawn from the pool without replacement."""

VISIT_S = 5.0
"""Seconds for the rounds of a point in a process: enough for ROUNDS of them."""

TABLES, ROWS = 300, 60

Generator = np.random.Generator
Values = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Process:
    """One process of one case: seconds per call of its first rounds, and the log ratio to eager over them."""

    values_s: Values
    log_ratio: float


Pool = dict[tuple[Point, str], list[Process]]


def collect(folder: Path, processes: int) -> None:
    """Calibrate the planted work, then measure the pool into a run folder."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = folder / "planted.json"
    if not counts.exists():
        counts.write_text(json.dumps(calibrated()))
    os.environ[PLANTED] = counts.read_text()
    for first in range(0, processes, SIDE):  # so many workers at a time, for the sake of memory
        begin = time.monotonic()
        list(run(sweep_of(SHAPES, (TWIN, THREE, FIVE, "sdpa"), SIDE, budget_s=VISIT_S * SIDE), folder / f"part{first}"))
        print(f"{first + SIDE} of {processes} processes, {time.monotonic() - begin:.0f} s", flush=True)


def calibrated() -> dict[str, dict[str, int]]:
    """Return how many products are 3 % and 5 % of eager at each shape, by measuring with many of them planted."""
    shapes = [key(**{name: size for name, size in shape.items() if name != "channels"}) for shape in SHAPES]
    counts = dict.fromkeys(shapes, 100)
    for _ in range(2):  # once from afar, once from near by
        shares = _shares(counts)
        counts = {name: max(1, round(counts[name] * 0.05 / shares[name])) for name in shapes}
    return {"five": counts, "three": {name: round(count * 0.03 / 0.05) for name, count in counts.items()}}


def _shares(counts: dict[str, int]) -> dict[str, float]:
    """Return by how much so many products make a call longer at each shape, against the same call without any."""
    os.environ[PLANTED] = json.dumps({"five": counts})
    with tempfile.TemporaryDirectory() as folder:
        list(run(sweep_of(SHAPES, (TWIN, FIVE), 5, budget_s=15), folder))
        rows = bench.load(folder).set_index("implementation")
    twins, fives = rows.loc[[TWIN]], rows.loc[[FIVE]]
    return {
        key(five["batch"], five["num_tokens"], five["token_len"], five["num_heads"]): twin["speedup"] / five["speedup"]
        - 1
        for (_, twin), (_, five) in zip(twins.iterrows(), fives.iterrows(), strict=True)
    }


def resample(folder: Path) -> None:
    """Print what the rules say of tables that are drawn from the pool."""
    pool = _pool(folder)
    rng = np.random.default_rng(1)
    for (point, name), found in pool.items():
        mean, sd = np.mean([p.log_ratio for p in found]), np.std([p.log_ratio for p in found], ddof=1)
        print(f"{point.name} {name}: {len(found)} processes, eager / it {np.exp(mean):.4f}, sd of the log {sd:.3%}")
    unchanged = [(point, name, name) for point, name in pool if name in (TWIN, "sdpa")]
    print(f"\nA/A, {TABLES} tables of {ROWS} rows, K = {SIDE}:")
    _judge(pool, unchanged, rng, TABLES)
    for name, share in PLANTED_SHARE.items():
        changed = [(point, TWIN, name) for point, other in pool if other == name]
        print(f"\n+{share:.0%} of work planted, {TABLES // 10} tables of {ROWS} rows, K = {SIDE}:")
        _judge(pool, changed, rng, TABLES // 10)


def live(folder: Path, pairs: int = 20, pause_s: int = 400) -> None:
    """Run `article` twice, so many times with a pause between, and print what `compare` says of each pair.

    Goes on with the runs in the folder. At the end prints how often any two of the runs differ.
    """
    sweep = load_sweep("article", threads=1, implementations=("eager", "manual", "stepwise", "online", "sdpa"))
    sweep = dataclasses.replace(sweep, control=False, effort=dataclasses.replace(sweep.effort, processes=5))
    alarmed = 0
    for number in range(pairs):
        one, other = (folder / f"{number:02d}-{side}" for side in ("base", "new"))
        is_new = not other.exists()
        for side in (one, other):
            list(run(sweep, side))
        alarmed += _tell(f"{number + 1:>2}/{pairs}  {time.strftime('%d %H:%M')}", verdicts(one, other))
        if is_new and number + 1 < pairs:
            time.sleep(pause_s)
    print(f"{alarmed} of {pairs} pairs hold a faster or slower")
    any_two = list(itertools.combinations(sorted(folder.glob("*-*")), 2))
    alarmed = sum(_alarms(verdicts(*two)) for two in any_two)
    print(f"{alarmed} of the {len(any_two)} pairs of any two of these runs do")


def verdicts(base: Path, new: Path) -> pd.DataFrame:
    """Return what `compare` says of two runs, with what the self-check of their machine has found."""
    runs = SavedRun(base), SavedRun(new)
    apart = [{threads: Between(*pair) for threads, pair in between(each.environment).items()} for each in runs]
    return bench.compare(*(each.table for each in runs), between=apart)


def _tell(name: str, compared: pd.DataFrame) -> bool:
    """Print the verdicts of a comparison, with the rows that raise an alarm, and return whether any does."""
    print(f"{name}  {dict(Counter(compared['verdict']))}", flush=True)
    for row in compared[compared["verdict"].isin(CHANGED)].to_dict("records"):
        change = f"{row['change']:.4f} [{row['change_low']:.4f}, {row['change_high']:.4f}]"
        print(f"       {row['implementation']} H={row['num_heads']} {row['verdict']} {change}", flush=True)
    return _alarms(compared)


def _alarms(compared: pd.DataFrame) -> bool:
    """Return whether a comparison of what did not change says that something did."""
    return bool(compared["verdict"].isin(CHANGED).any())


def _judge(pool: Pool, rows: Sequence[tuple[Point, str, str]], rng: Generator, tables: int) -> None:
    """Print what `compare` and the rules of other suites say of each row of tables drawn from the pool."""
    said: Counter[str] = Counter()
    others: Counter[str] = Counter()
    alarmed = 0
    for _ in range(tables):
        drawn = [_draw(pool, rows[int(rng.integers(len(rows)))], rng) for _ in range(ROWS)]
        verdicts = Counter(bench.compare(*(_table([side[n] for side in drawn], rows[0][0]) for n in (0, 1)))["verdict"])
        said += verdicts
        alarmed += bool(verdicts["faster"] or verdicts["slower"])
        for name, rule in RULES.items():
            others[name] += sum(rule(base, new) for base, new in drawn)
    total = tables * ROWS
    print(f"  {alarmed} of {tables} tables hold a faster or slower")
    print("  compare: " + ", ".join(f"{verdict} {count / total:.1%}" for verdict, count in said.most_common()))
    for name, count in others.items():
        print(f"  {name}: different {count / total:.1%}")


def _draw(pool: Pool, row: tuple[Point, str, str], rng: Generator) -> tuple[list[Process], list[Process]]:
    """Return disjoint processes for both sides: of one case, or of two that were measured in the same processes."""
    point, base, new = row
    order = rng.permutation(len(pool[point, base]))
    chosen = order[:SIDE], order[SIDE : 2 * SIDE]
    return [pool[point, base][i] for i in chosen[0]], [pool[point, new][i] for i in chosen[1]]


def _table(rows: Sequence[Sequence[Process]], point: Point) -> pd.DataFrame:
    """Return a table of results whose rows have the ratios of these processes; batch tells the rows apart."""
    made = []
    for number, processes in enumerate(rows, 1):
        estimate = ratio([process.log_ratio for process in processes])
        columns = dataclasses.asdict(dataclasses.replace(point, batch=number))
        made.append(
            {
                **dict.fromkeys(COLUMNS),
                **columns,
                "implementation": "drawn",
                "status": "ok",
                "speedup": estimate.value,
                "log_ratio_sd": estimate.sd,
                "processes": len(processes),
                "latency_s": float(np.median(np.concatenate([process.values_s for process in processes]))),
                "schema_version": SCHEMA_VERSION,
            }
        )
    return typed(pd.DataFrame(made, columns=list(COLUMNS)))


def _pytest_benchmark(base: Sequence[Process], new: Sequence[Process]) -> bool:
    """`--benchmark-compare-fail=median:5%` on one process a side, in either direction."""
    one, other = np.median(base[0].values_s), np.median(new[0].values_s)
    return bool(max(one, other) / min(one, other) > 1.05)


def _pyperf(base: Sequence[Process], new: Sequence[Process]) -> bool:
    """`pyperf compare_to`: Student's two-sample t test over all values at 95 %."""
    one, other = (np.concatenate([process.values_s for process in side]) for side in (base, new))
    return bool(stats.ttest_ind(one, other).pvalue < 0.05)


def _asv(base: Sequence[Process], new: Sequence[Process]) -> bool:
    """Asv's `is_different`: Mann and Whitney's test over all values at p < 0.002, before its factor."""
    one, other = (np.concatenate([process.values_s for process in side]) for side in (base, new))
    return bool(stats.mannwhitneyu(one, other).pvalue < 0.002)


def _asv_factor(base: Sequence[Process], new: Sequence[Process]) -> bool:
    """`asv continuous`: the same, and medians that differ by a factor of 1.1."""
    one, other = (np.median(np.concatenate([process.values_s for process in side])) for side in (base, new))
    return bool(max(one, other) / min(one, other) > 1.1) and _asv(base, new)


RULES: dict[str, Callable[[Sequence[Process], Sequence[Process]], bool]] = {
    "pytest-benchmark median:5%": _pytest_benchmark,
    "pyperf's t test": _pyperf,
    "asv's test": _asv,
    "asv's test with its factor of 1.1": _asv_factor,
}


def _pool(folder: Path) -> Pool:
    pool: Pool = defaultdict(list)
    for part in sorted(folder.glob("part*")):
        records = {(r.case.point, r.process, r.case.implementation): r for r in journal.read(part) if r.status == "ok"}
        for (point, process, name), record in records.items():
            eager = records.get((point, process, "eager"))
            if eager is None or name == "eager":
                continue
            logs = paired_log_ratio(*_first(record), *_first(eager))
            pool[point, name].append(Process(np.array(_first(record)[0]), logs))
    return pool


def _first(record: Any) -> tuple[list[float], list[int]]:
    """Return the values and numbers of a record's first rounds."""
    return list(record.samples.values_s)[:ROUNDS], list(record.samples.rounds)[:ROUNDS]


def sweep_of(shapes: Sequence[dict[str, int]], names: Sequence[str], processes: int, budget_s: float) -> Sweep:
    """Return a sweep of these shapes in which rounds end by the budget alone."""
    effort = {"processes": processes, "budget_s": budget_s, "target": 1e-6}
    sweeps = [
        load_sweep("article", threads=1, implementations=("eager", *names), overrides=shape, effort=effort)
        for shape in shapes
    ]
    points = tuple(dict.fromkeys(point for sweep in sweeps for point in sweep.points))
    return dataclasses.replace(sweeps[0], points=points, control=False)


def _main(words: Sequence[str]) -> None:
    match words:
        case ["collect", folder, *rest]:
            collect(Path(folder), int(rest[0]) if rest else PROCESSES)
        case ["resample", folder]:
            resample(Path(folder))
        case ["live", folder, *rest]:
            live(Path(folder), *map(int, rest))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    _main(sys.argv[1:])
