"""One implementation in two environments: a worker of each, which alternate in taking samples.

Both workers prepare, then take one sample at a time in rounds, never at the same time. So the rounds of two processes
are paired like those of one process, and an interval counts pairs of processes.
"""

import os
import random
from collections import Counter
from pathlib import Path
from typing import Self

from bench.analyse.duel import Sides
from bench.engine import admission, preflight
from bench.engine.corner import Corner, Ended, Side
from bench.engine.run import now, warnings
from bench.plan.case import Point
from bench.plan.sweep import Sweep
from bench.sampling.rounds import StoppingRule, sample
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
        self.warnings: list[str] = []
        self._sides = tuple(Side(sweep, folder / name, python) for name, python in zip(SIDES, pythons, strict=True))

    def __enter__(self) -> Self:
        try:
            admission.check_threads(self.sweep)
            state = preflight.watch()
            for side in self._sides:
                side.start()
            for side in self._sides:
                side.open(state)
            notices = [notice for side in self._sides for notice in side.ledger.notices]
            self.warnings = [*notices, *warnings(state, self.sweep)]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers and unlock the folders."""
        for side in reversed(self._sides):
            side.pool.close()
            side.ledger.close()

    def renew(self) -> None:
        """End all workers, so that the next pair of a point consists of fresh processes."""
        for side in self._sides:
            side.pool.renew()

    @property
    def environments(self) -> tuple[Environment, Environment]:
        """The environments of both sides."""
        a, b = (side.ledger.here for side in self._sides)
        return a, b

    def sides(self, point: Point) -> Sides:
        """Return the records of a point, side A's and side B's."""
        a, b = (side.ledger.of(point) for side in self._sides)
        return a, b

    def measure(self, point: Point, processes: int) -> None:
        """Measure a point until it has this many pairs of processes, or one side has failed."""
        while not self._failed(point) and len(self._pairs(point)) < processes:
            self._visit(point)
        for side in self._sides:
            side.ledger.tabulate(point)

    def _failed(self, point: Point) -> bool:
        return any(side.ledger.failed(point) for side in self._sides)

    def _pairs(self, point: Point) -> set[int]:
        a, b = (side.ended(point) for side in self._sides)
        return a & b

    def _visit(self, point: Point) -> None:
        """Measure a point in one more pair, and write a record for each side.

        If a worker dies, both are replaced and the pair is measured again, until one side has died twice.
        """
        number, started = max(side.ledger.next_process(point) for side in self._sides), now()
        deaths: Counter[str] = Counter()
        corners = self._corners(point)
        while dead_sides := {name for name, corner in corners.items() if corner.death}:
            deaths.update(dead_sides)
            if max(deaths.values()) > 1:
                break
            self.renew()
            corners = self._corners(point)
        for name, corner in corners.items():
            corner.blame(deaths[name])
            corner.keep(number, started)

    def _corners(self, point: Point) -> dict[str, Corner]:
        """Return both sides after one attempt to measure a point in a pair."""
        for side in self._sides:
            side.pool.start(point)
        corners = dict(zip(SIDES, (Corner(side, point) for side in self._sides), strict=True))
        rng = random.Random()  # noqa: S311 - an order, not a secret
        first, second = rng.sample([*corners.values()], 2)
        _prepare(first, second, _core(point, rng))
        if all(corner.is_ok for corner in corners.values()):
            _take_rounds(corners, rng)
        return corners


def _core(point: Point, rng: random.Random) -> int | None:
    """Return the core on which both sides take their samples, random for each pair; None if they may use any core.

    A busy process on one of two cores would slow only one of the sides: an A/A ratio was seen to be wrong by a third.
    With several threads both sides use most cores anyway.
    """
    if point.device != "cpu" or point.threads > 1 or not hasattr(os, "sched_getaffinity"):
        return None
    return rng.choice(sorted(os.sched_getaffinity(0)))


def _prepare(first: Corner, second: Corner, core: int | None) -> None:
    """Start and prepare both sides, one after the other; if one fails, the other is skipped."""
    steps = (
        first.come,
        second.come,
        lambda: first.prepare(second.pid, core),
        lambda: second.prepare(first.pid, core),
    )
    for step in steps:
        step()
        if not (first.is_ok and second.is_ok):
            break
    for corner, other in ((first, second), (second, first)):
        if corner.is_ok and not other.is_ok:
            corner.skip()


def _take_rounds(corners: dict[str, Corner], rng: random.Random) -> None:
    """Take samples until the ratio is known or the budget is spent; if one side fails, the other continues alone."""

    def failed(name: str, error: Exception) -> None:
        if not isinstance(error, Ended):
            raise error
        corners[name].end(error)

    limits = StoppingRule(**corners[SIDES[0]].request["limits"])
    samples = sample({name: corner.take_sample for name, corner in corners.items()}, SIDES[0], limits, rng, failed)
    for name, own in samples.items():
        corners[name].finish(own)
