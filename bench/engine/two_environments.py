"""One implementation in two environments: a run of each, whose processes take samples in the same rounds.

So the rounds of two environments are paired like those of two implementations, and an interval counts replicates.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

from bench.analyse.summary import Summary
from bench.engine.race import Looked, Race
from bench.engine.replicate import Replicate
from bench.engine.run import Heard, Run
from bench.engine.worker import unheard
from bench.plan.case import Case, Point
from bench.plan.sweep import Sweep
from bench.sampling.rounds import Length
from bench.store.environment import Environment
from bench.store.record import Record

SIDES = ("A", "B")
"""The names of the two sides; each has a run folder, `a` or `b`, because each is a separate environment."""


class Pair:
    """A race of two environments into two run folders, `a` and `b`; it is a context manager.

    Entering it raises WrongRequest if an interpreter, its torch or the implementation can't be found, or if a folder
    has results that were measured under other conditions. Then `summary` says what was measured so far, with the sides
    as the implementations of `sweep`, A as its baseline.
    `heard` is called for every event from a worker.
    """

    def __init__(self, sweep: Sweep, folder: Path, pythons: tuple[str, str]) -> None:
        (self.implementation,) = sweep.implementations
        self.sweep = dataclasses.replace(sweep, implementations=SIDES, baseline=SIDES[0])
        self.summary = Summary(SIDES[0])
        self.folder = folder
        self.heard: Heard = unheard
        self._runs = {
            side: Run(sweep, folder / side.lower(), 1, needs_all=True, python=python)
            for side, python in zip(SIDES, pythons, strict=True)
        }

    def __enter__(self) -> Self:
        with ExitStack() as entered:
            for run in self._runs.values():
                entered.enter_context(run)
            self._entered = entered.pop_all()
        for point in self.sweep.points:
            self._summarise(point)
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()

    @property
    def warnings(self) -> list[str]:
        """The problems of the machine and repairs of the folders."""
        first, second = self._runs.values()
        return [*first.warnings, *second.run_folder.notices]

    @property
    def environments(self) -> tuple[Environment, Environment]:
        """The environments of both sides."""
        a, b = (run.environment for run in self._runs.values())
        return a, b

    def end_s(self, points: int) -> float:
        """Return the time of the monotonic clock at which a race over so many points ends."""
        return self._runs[SIDES[0]].end_s(points)

    def race(self, points: Sequence[Point], looked: Looked = unheard) -> None:
        """Measure points in a race; `looked` is called after each look at one."""
        Race(self, points, self.end_s(len(points)), looked).go()

    def together(self, point: Point) -> list[Point]:
        """Return the point: each is measured by itself."""
        return [point]

    def leave_out(self, point: Point, processes: int) -> None:
        """Write a record for each side if the point can't be measured here."""
        for run in self._runs.values():
            run.leave_out(point, processes)
        self._summarise(point)

    def missing_in_base(self, point: Point) -> list[str]:
        """Return both sides if a point needs more pairs of processes, and none of the sides has failed."""
        runs = self._runs.values()
        a, b = ({entry.process for entry in run.run_folder.entries(point) if entry.status == "ok"} for run in runs)
        is_over = len(a & b) >= self.sweep.effort.processes or any(run.run_folder.failed(point) for run in runs)
        return [] if is_over else [*SIDES]

    def replicate(self, missing: Mapping[Point, Sequence[str]], length: Length, *, is_look: bool = False) -> Replicate:
        """Measure both sides of a point in one more replicate, and end all servers, so that the next has fresh ones.

        If a process dies for the first time, nothing of the replicate is kept.
        """
        del is_look
        (point,) = missing
        first = self._runs[SIDES[0]]
        number = max(run.run_folder.next_process(point) for run in self._runs.values())
        members = {side: run.member(Case(point, self.implementation)) for side, run in self._runs.items()}
        heard, baselines = partial(self.heard, point, number), [members[SIDES[0]]]
        replicate = Replicate([*members.values()], baselines, length, first.seed(point), number, heard)
        replicate.measure(self.sweep.effort.timeout_s, together=True)
        for side, run in self._runs.items():
            run.deaths.count([members[side]])
        if not any(run.deaths.allow(members[side]) for side, run in self._runs.items()):
            for side, run in self._runs.items():
                run.keep([members[side]], number, replicate)
            self._summarise(point)
        for run in self._runs.values():
            run.renew()
        return replicate

    def tabulate(self) -> None:
        """Write both tables of results if they are due; raises CannotWrite if they can't be written."""
        for run in self._runs.values():
            run.tabulate()

    def _summarise(self, point: Point) -> None:
        """Take the times of a point into the summary: no side costs less memory, so A is named if both are as fast."""
        records = [_of_side(record, side) for side, run in self._runs.items() for record in run.run_folder.of(point)]
        if records:
            self.summary.put(records)


def _of_side(record: Record, side: str) -> Record:
    """Return a record under the name of its side, with what its times need of the metrics."""
    metrics = {"calls_per_timing": record.metrics["calls_per_timing"]}
    return dataclasses.replace(record, case=Case(record.case.point, side), metrics=metrics)
