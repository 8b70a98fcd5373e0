"""What a process costs its neighbours: `python -m tests.drills.company [idle|beside] [RUNS]`.

`idle`: eager takes samples while one, or ten, other prepared processes wait for theirs, in turns with rounds in which
the system has stopped them. Prints how much longer a sample takes beside waiting processes than beside stopped ones.
`beside`: the speed-ups of two implementations, measured with eager alone and with nine others, in turns of runs.
Prints the difference of the means with its interval, at each shape.
"""

import dataclasses
import itertools
import math
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import bench
from bench.engine.interference import Interference
from bench.engine.member import Member
from bench.engine.replicate import Replicate
from bench.engine.run import Run, run
from bench.plan.case import Point
from bench.plan.sweep import Effort, Sweep
from bench.sampling.samples import Sample
from bench.stats.estimates import ratio
from bench.store import machine
from bench.store.table import cases
from tests.points import point

WAITING = (1, 10)
ROUNDS = 200

SAMPLES_S = 0.5
"""The seconds for the samples of each implementation in a process."""

FEW = ("eager", "sdpa", "online")
MANY = (*FEW, "manual", "stepwise", "sdpa_math", "sdpa_flash", "mha", "mha_weights", "compiled_sdpa")
SHAPES = ((8, 50, 96, 3), (8, 100, 192, 3), (8, 197, 192, 3), (8, 197, 384, 6), (4, 577, 192, 3), (2, 1024, 384, 6))


class IdleNeighbours(Replicate):
    """A replicate in which eager alone takes samples; in every second round the other processes are stopped."""

    def __init__(self, members: dict[str, Member], *arguments: object, **options: object) -> None:
        self.logs: list[float] = []
        super().__init__(members, *arguments, **options)  # type: ignore[arg-type]

    def _take_rounds(self, active: dict[str, Member]) -> None:
        others = [member.pid for name, member in active.items() if name != "eager" and member.pid is not None]
        self._interference = Interference(self._point.threads, self._own_s)
        measured: dict[int, list[float]] = {signal.SIGSTOP: [], signal.SIGCONT: []}
        for _ in range(ROUNDS):
            for how in self._rng.sample([*measured], 2):
                for pid in others:
                    os.kill(pid, how)
                taken: Sample = self._sample(active["eager"])
                measured[how].append(min(taken.timings_s))
        self.logs = [float(np.log(b / a)) for a, b in zip(*measured.values(), strict=True)]

    def _finish(self, member: Member) -> None:
        pass


def sweep(points: tuple[Point, ...], names: tuple[str, ...], processes: int = 3) -> Sweep:
    """Return a sweep in which each implementation has the same time for its samples, whatever its company."""
    effort = Effort(processes=processes, budget_s=SAMPLES_S * len(names) * processes)
    return Sweep("company", points, names, effort=effort)


def shape(batch: int, tokens: int, channels: int, heads: int) -> Point:
    """Return a point of the ViT layer."""
    allocator = machine.default_allocator()
    return point(batch=batch, num_tokens=tokens, channels=channels, num_heads=heads, allocator=allocator)


def idle(runs: int) -> None:
    """Print how much a sample of eager changes beside waiting processes."""
    for threads, waiting in itertools.product((1, os.cpu_count() or 1), WAITING):
        at = dataclasses.replace(shape(8, 100, 192, 3), threads=threads)
        medians = []
        for number in range(runs):
            with tempfile.TemporaryDirectory() as folder, Run(sweep((at,), ("eager",), 1), Path(folder), 1) as opened:
                members = {"eager": opened.member(at, "eager")}
                members |= {f"waiting {index}": opened.member(at, "sdpa") for index in range(waiting)}
                replicate = IdleNeighbours(members, "eager", opened.length, opened.seed(at), number)
                replicate.measure(60.0)
                medians.append(float(np.median(replicate.logs)))
        print(f"{threads} thread(s), {waiting} waiting process(es): {_difference(medians)}", flush=True)


def beside(runs: int) -> None:
    """Print how much speed-ups change if nine others are measured in the same rounds."""
    points = tuple(shape(*each) for each in SHAPES)
    logs: dict[tuple[Point, str], list[float]] = {}
    for number in range(runs):
        measured = {}
        for names in (FEW, MANY) if number % 2 else (MANY, FEW):
            measured[names] = _log_speedups(points, names)
        few, many = measured[FEW], measured[MANY]
        for key in few:
            logs.setdefault(key, []).append(many[key] - few[key])
        for (at, name), differences in logs.items():
            print(f"B={at.batch} N={at.num_tokens} C={at.channels} {name}: {_difference(differences)}", flush=True)


def _log_speedups(points: tuple[Point, ...], names: tuple[str, ...]) -> dict[tuple[Point, str], float]:
    """Return the logarithms of the speed-ups of FEW, measured together with all names."""
    with tempfile.TemporaryDirectory() as folder:
        list(run(sweep(points, names), folder))
        table = bench.load(Path(folder))
    return {
        (case.point, case.implementation): math.log(speedup)
        for case, speedup in zip(cases(table), table["speedup"], strict=True)
        if case.implementation in FEW[1:]
    }


def _difference(logs: list[float]) -> str:
    mean = ratio(logs)
    return f"{mean.value - 1:+.2%} [{mean.low - 1:+.2%}, {mean.high - 1:+.2%}] of {len(logs)} runs"


def main(part: str = "idle", runs: str = "5") -> None:
    """Print one of the two parts."""
    parts: dict[str, Callable[[], None]] = {"idle": partial(idle, int(runs)), "beside": partial(beside, int(runs))}
    parts[part]()


if __name__ == "__main__":
    main(*sys.argv[1:])
