"""What makes two runs differ: `python -m tests.drills.repeatability FOLDER [OCCASIONS [PAUSE_S]]`.

Measures three shapes on several occasions with a pause between them: alone with eager and beside nine others, with
small and with huge pages. If the folder is there, goes on with it. Prints the components of the variance of a log
speed-up with their intervals, and draws them into the folder.

rounds      what rounds within a process scatter by, in the midmean of a process
replicates  what processes of one occasion differ by beyond their rounds: code layout, places of pages in memory
occasions   what occasions differ by beyond their processes: the machine's state
company     what a row differs by, beside nine others, beyond all of these
"""

import dataclasses
import itertools
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bench.analyse.summary import values_of
from bench.engine.run import run
from bench.machine import facts
from bench.plan.case import HUGE, RETAINED, Case, Point
from bench.plan.sweep import Effort, Sweep
from bench.stats.estimates import Array
from bench.store import journal
from bench.store.record import Record
from tests.points import vit

SAMPLES_S = 0.5
"""The seconds for the samples of each implementation in a process."""

FEW = ("eager", "sdpa", "online")
MANY = (*FEW, "manual", "stepwise", "sdpa_math", "sdpa_flash", "mha", "mha_weights", "compiled_sdpa")
SHAPES = ((13, 100, 64, 4), (8, 197, 96, 6), (8, 197, 384, 6))
REPLICATES = 4
BASELINE = "eager"
COMPONENTS = ("rounds", "replicates", "occasions")
DRAWS = 1_000

MARKS = {"alone": "o", "beside": "s", "both": "^"}
SAID = {"alone": "alone with eager", "beside": "beside nine others", "both": "from one to the other"}
"""How the picture marks and names each company."""

Occasion = Array
"""The log speed-ups of its processes, and below them the variances of these that come from rounds."""

Changed = tuple[str, float, float, float, int]
"""An allocator, a standard deviation with its interval, and the number of occasions."""


def sweep(names: tuple[str, ...]) -> Sweep:
    """Return the sweep of one occasion, with each allocator that this system has."""
    allocators = [RETAINED] if facts.huge_pages_missing() else [RETAINED, HUGE]
    points = tuple(
        dataclasses.replace(vit(*each), allocator=name) for each, name in itertools.product(SHAPES, allocators)
    )
    effort = Effort(processes=REPLICATES, budget_s=SAMPLES_S * len(names) * REPLICATES)
    return Sweep("repeatability", points, names, BASELINE, effort)


def measure(folder: Path, occasions: int, pause_s: float) -> None:
    """Measure the occasions that the folder lacks, alone and in company by turns."""
    for number in range(occasions):
        for names, company in [((FEW, "alone"), (MANY, "beside")), ((MANY, "beside"), (FEW, "alone"))][number % 2]:
            list(run(sweep(names), folder / f"{company}-{number:02d}"))
        print(f"occasion {number + 1} of {occasions} is measured", flush=True)
        if number + 1 < occasions and not (folder / f"beside-{number + 1:02d}").exists():
            time.sleep(pause_s)


def occasions_in(folder: Path, company: str) -> dict[Case, list[Occasion]]:
    """Return the occasions of each case of FEW, as far as they are complete."""
    found: dict[Case, list[Occasion]] = defaultdict(list)
    for each in sorted(folder.glob(f"{company}-*")):
        by_point: dict[Point, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
        for record in journal.read(each):
            by_point[record.case.point][record.case.implementation].append(record)
        for point, by_name in by_point.items():
            of = values_of({name: by_name[name] for name in (BASELINE, *FEW[1:])})
            for name, logs, variances in zip(of.names[1:], of.logs[1:], of.variances[1:], strict=True):
                occasion = np.stack([of.logs[0] - logs, of.variances[0] + variances])
                if occasion.shape[1] == REPLICATES and not np.isnan(occasion).any():
                    found[Case(point, name)].append(occasion)
    return found


def components(occasions: Sequence[Occasion]) -> dict[str, float]:
    """Return the components of the variance of a row, by the method of moments of a nested design.

    A component that is smaller than its error can be negative; the mean over rows is not.
    """
    values, variances = np.stack(occasions, axis=1)
    rounds = float(np.mean(variances))
    within = float(np.mean(np.var(values, axis=1, ddof=1)))
    between = float(np.var(values.mean(axis=1), ddof=1))
    count = values.shape[1]
    return {"rounds": rounds / count, "replicates": (within - rounds) / count, "occasions": between - within / count}


def table(folder: Path) -> pd.DataFrame:
    """Return the components by allocator and company, as standard deviations of a row, with 95 % intervals.

    Intervals are of a bootstrap over occasions.
    """
    rng = np.random.default_rng(1)
    rows = []
    by_company = {company: occasions_in(folder, company) for company in ("alone", "beside")}
    for company, cases in by_company.items():
        for allocator in dict.fromkeys(case.point.allocator for case in cases):
            chosen = [each for case, each in cases.items() if case.point.allocator == allocator]
            count = min(map(len, chosen))
            drawn = [_mean(chosen, rng.integers(0, count, count)) for _ in range(DRAWS)]
            whole = _mean(chosen, np.arange(count))
            for name in COMPONENTS:
                low, high = np.percentile([each[name] for each in drawn], [2.5, 97.5])
                rows.append((allocator, company, name, *map(_sd, (whole[name], low, high)), count))
    rows += [(allocator, "both", "company", *values) for allocator, *values in _company(by_company)]
    return pd.DataFrame(rows, columns=["allocator", "company", "component", "sd", "low", "high", "occasions"])


def _mean(cases: Sequence[Sequence[Occasion]], chosen: "np.typing.NDArray[np.int_]") -> dict[str, float]:
    each = [components([occasions[index] for index in chosen]) for occasions in cases]
    return {name: float(np.mean([one[name] for one in each])) for name in COMPONENTS}


def _company(
    by_company: Mapping[str, Mapping[Case, Sequence[Occasion]]],
) -> Iterable[Changed]:
    """Yield for each allocator what company changes beyond chance, as a standard deviation over rows."""
    alone, beside = by_company["alone"], by_company["beside"]
    for allocator in dict.fromkeys(case.point.allocator for case in alone):
        excess, count = [], 0
        for case in (case for case in alone if case.point.allocator == allocator and case in beside):
            means = [np.stack(side[case])[:, 0].mean(axis=1) for side in (alone, beside)]
            count = min(map(len, means))
            differences = means[1][:count] - means[0][:count]
            excess.append(float(np.mean(differences) ** 2 - np.var(differences, ddof=1) / count))
        spread = 2 * float(np.std(excess, ddof=1)) / math.sqrt(len(excess))
        mean = float(np.mean(excess))
        yield allocator, _sd(mean), _sd(mean - spread), _sd(mean + spread), count


def _sd(variance: float) -> float:
    return math.sqrt(max(0.0, variance))


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Draw each component with its interval: a panel for each allocator, a mark for each company."""
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    allocators = rows["allocator"].unique()
    panels = figure.subplots(1, len(allocators), sharey=True, squeeze=False)[0]
    for axes, allocator in zip(panels, allocators, strict=True):
        shown = rows[rows["allocator"] == allocator]
        places = {name: place for place, name in enumerate(shown["component"].unique())}
        for shift, (company, marks) in zip((-0.1, 0.1, 0.0), shown.groupby("company", sort=False), strict=True):
            percent = marks[["sd", "low", "high"]] * 100
            ends = [(percent["sd"] - percent["low"]).clip(lower=0), (percent["high"] - percent["sd"]).clip(lower=0)]
            across = marks["component"].map(places) + shift
            axes.errorbar(across, percent["sd"], yerr=ends, fmt=MARKS[company], capsize=3, label=SAID[company])
        axes.set_xticks([*places.values()], [*places])
        axes.set_ylim(bottom=0)
        axes.set_title(allocator)
    figure.axes[0].legend()
    figure.axes[0].set_ylabel("standard deviation of a row's speed-up (%)")
    figure.savefig(path, dpi=120)


def main(folder: str, occasions: str = "10", pause_s: str = "600") -> None:
    """Measure what is missing, print the table and draw the picture."""
    measure(Path(folder), int(occasions), float(pause_s))
    rows = table(Path(folder))
    shown = rows.assign(**{name: (rows[name] * 100).round(2) for name in ("sd", "low", "high")})
    print(shown.rename(columns={name: f"{name} %" for name in ("sd", "low", "high")}).to_string(index=False))
    rows.to_csv(Path(folder) / "components.csv", index=False)
    draw(rows, Path(folder) / "components.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
