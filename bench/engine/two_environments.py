"""One implementation in two environments: a run of each, whose processes take samples in the same rounds.

So the rounds of two environments are paired like those of two implementations, and an interval counts replicates.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Self

from bench.analyse.duel import Sides
from bench.engine.replicate import Replicate
from bench.engine.run import Run
from bench.plan.case import Point
from bench.plan.sweep import Sweep
from bench.store.environment import Environment

SIDES = ("a", "b")
"""The folders of the two sides; each is a separate run folder, because each side is a separate environment."""


class Pair:
    """A measurement of two environments into two run folders, `a` and `b`; it is a context manager.

    Entering it raises WrongRequest if an interpreter, its torch or the implementation can't be found, or if a folder
    has results that were measured under other conditions.
    """

    def __init__(self, sweep: Sweep, folder: Path, pythons: tuple[str, str]) -> None:
        self.sweep = sweep
        self.folder = folder
        self._runs = {
            name: Run(sweep, folder / name, 1, needs_all=True, python=python)
            for name, python in zip(SIDES, pythons, strict=True)
        }

    def __enter__(self) -> Self:
        with ExitStack() as entered:
            for run in self._runs.values():
                entered.enter_context(run)
            self._entered = entered.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()

    def renew(self) -> None:
        """End all servers, so that the next replicate of a point comes from fresh ones."""
        for run in self._runs.values():
            run.renew()

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

    def sides(self, point: Point) -> Sides:
        """Return the records of a point, side A's and side B's."""
        a, b = (run.records(point, self.sweep.implementations[0]) for run in self._runs.values())
        return a, b

    def measure(self, point: Point, processes: int) -> None:
        """Measure a point until it has this many pairs of processes, or one side has failed."""
        runs = self._runs.values()
        for run in runs:
            run.leave_out(point, processes)
            run.end_unneeded(point)
        while not any(run.run_folder.failed(point) for run in runs) and len(self._pairs(point)) < processes:
            self._replicate(point)
        for run in runs:
            run.run_folder.tabulate()

    def _pairs(self, point: Point) -> set[int]:
        """Return the replicates in which both sides were measured."""
        a, b = ({record.process for record in side if record.status == "ok"} for side in self.sides(point))
        return a & b

    def _replicate(self, point: Point) -> None:
        """Measure a point in one more replicate; if a process dies for the first time, nothing of it is kept."""
        (name,) = self.sweep.implementations
        first = self._runs[SIDES[0]]
        number = max(run.run_folder.next_process(point) for run in self._runs.values())
        members = {side: run.member(point, name) for side, run in self._runs.items()}
        replicate = Replicate(members, dict.fromkeys(SIDES, SIDES[0]), first.length, first.seed(point), number)
        replicate.measure(self.sweep.effort.timeout_s, together=True)
        for side, run in self._runs.items():
            run.count_deaths([members[side]])
        if any(run.is_tried_again(members[side]) for side, run in self._runs.items()):
            self.renew()
            return
        for side, run in self._runs.items():
            run.keep([members[side]], number, replicate)
