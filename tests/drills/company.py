"""What a process costs its neighbours: `python -m tests.drills.company [idle|beside] [RUNS]`.

`idle`: eager takes samples while ten other prepared processes wait for theirs, in turns with rounds in which the system
has stopped these ten. Prints how much longer a sample takes beside waiting processes than beside stopped ones.
`beside`: the speed-ups of two implementations, measured with eager alone and with nine others, in turns of runs.
Prints the difference of the means with its interval, at each shape.
"""

import dataclasses
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import bench
from bench.engine.member import Member
from bench.engine.replicate import Replicate
from bench.engine.run import Run, run
from bench.plan.case import Point
from bench.plan.sweep import Effort, Sweep
from bench.sampling.samples import Sample
from bench.stats.replicates import ratio
from tests.points import point

WAITING = 10
ROUNDS = 200
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
        super()._take_rounds({})
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


def sweep(at: Point, names: tuple[str, ...], processes: int = 3) -> Sweep:
    """Return a sweep of one point."""
    return Sweep("company", (at,), names, effort=Effort(processes=processes, target=0.0001, budget_s=1.0 * processes))


def shape(batch: int, tokens: int, channels: int, heads: int) -> Point:
    """Return a point of the ViT layer."""
    return point(batch=batch, num_tokens=tokens, channels=channels, token_len=channels, num_heads=heads)


def idle(runs: int) -> None:
    """Print how much a sample of eager changes beside waiting processes."""
    for threads in (1, os.cpu_count() or 1):
        at = dataclasses.replace(shape(8, 100, 192, 3), threads=threads)
        medians = []
        for number in range(runs):
            with tempfile.TemporaryDirectory() as folder, Run(sweep(at, ("eager",), 1), Path(folder), 1) as opened:
                members = {"eager": opened.member(at, "eager")}
                members |= {f"waiting {index}": opened.member(at, "sdpa") for index in range(WAITING)}
                replicate = IdleNeighbours(members, "eager", opened.limits, opened.seed(at), number)
                replicate.measure(60.0)
                medians.append(float(np.median(replicate.logs)))
        print(f"{threads} thread(s), {WAITING} waiting processes: {_difference(medians)}", flush=True)


def beside(runs: int) -> None:
    """Print how much speed-ups change if nine others are measured in the same rounds."""
    for each in SHAPES:
        at = shape(*each)
        logs: dict[tuple[str, bool], list[float]] = {}
        for _ in range(runs):
            for is_many in (False, True):
                with tempfile.TemporaryDirectory() as folder:
                    list(run(sweep(at, MANY if is_many else FEW), folder))
                    table = bench.load(Path(folder)).set_index("implementation")
                for name in FEW[1:]:
                    logs.setdefault((name, is_many), []).append(float(np.log(table["speedup"][name])))
        for name in FEW[1:]:
            differences = [many - few for few, many in zip(logs[name, False], logs[name, True], strict=True)]
            print(f"B={at.batch} N={at.num_tokens} C={at.channels} {name}: {_difference(differences)}", flush=True)


def _difference(logs: list[float]) -> str:
    mean = ratio(logs)
    return f"{mean.value - 1:+.2%} [{mean.low - 1:+.2%}, {mean.high - 1:+.2%}] of {len(logs)} runs"


def main(part: str = "idle", runs: str = "5") -> None:
    """Print one of the two parts."""
    parts: dict[str, Callable[[], None]] = {"idle": partial(idle, int(runs)), "beside": partial(beside, int(runs))}
    parts[part]()


if __name__ == "__main__":
    main(*sys.argv[1:])
