"""One implementation in two environments: a worker of each beside the other, asked for their slots in turns.

Both are prepared, then asked for one slot at a time in rounds, never both at once. So the rounds of two processes
pair as those of one process do, and a pair of processes is what an interval counts.
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
from bench.sampling.rounds import Limits, sample
from bench.store.environment import Environment

SIDES = ("a", "b")
"""The folders of the two sides: each is a run folder of its own, because each side is an environment of its own."""


class Pair:
    """Two run folders that are filled side by side, `a` and `b`: use it as a context.

    Entering it raises WrongRequest when an interpreter, its torch or the implementation can't be found,
    or when a folder holds results that were measured under other conditions.
    """

    def __init__(self, sweep: Sweep, folder: Path, pythons: tuple[str, str]) -> None:
        self.sweep = sweep
        self.folder = folder
        self.warnings: list[str] = []
        self._sides = tuple(Side(sweep, folder / name, python) for name, python in zip(SIDES, pythons, strict=True))

    def __enter__(self) -> Self:
        try:
            admission.check_threads(self.sweep)
            seen = preflight.look()
            for side in self._sides:
                side.start()
            for side in self._sides:
                side.open(seen)
            notices = [notice for side in self._sides for notice in side.ledger.notices]
            self.warnings = [*notices, *warnings(seen, self.sweep)]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, and leave the folders to others."""
        for side in reversed(self._sides):
            side.pool.close()
            side.ledger.close()

    def renew(self) -> None:
        """End all workers, so that the next pair of a point is one that has measured nothing yet."""
        for side in self._sides:
            side.pool.renew()

    @property
    def environments(self) -> tuple[Environment, Environment]:
        """Where each side measures."""
        a, b = (side.ledger.here for side in self._sides)
        return a, b

    def sides(self, point: Point) -> Sides:
        """Return the records of a point, side A's and side B's."""
        a, b = (side.ledger.of(point) for side in self._sides)
        return a, b

    def measure(self, point: Point, processes: int) -> None:
        """Measure a point in pairs until there are so many, or one side has failed."""
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
        """Measure a point in one more pair, and keep a record of each side.

        If a worker dies, both are replaced and the pair is measured again, until one side has died twice.
        """
        number, started = max(side.ledger.next_process(point) for side in self._sides), now()
        deaths: Counter[str] = Counter()
        corners = self._corners(point)
        while died := {name for name, corner in corners.items() if corner.death}:
            deaths.update(died)
            if max(deaths.values()) > 1:
                break
            self.renew()
            corners = self._corners(point)
        for name, corner in corners.items():
            corner.blame(deaths[name])
            corner.keep(number, started)

    def _corners(self, point: Point) -> dict[str, Corner]:
        """Return both sides after one try at measuring a point in a pair."""
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
    """Return the core on which both sides take their turns, another one for each pair; None where they may choose.

    A neighbour on one of two cores would slow the side that is beside it and not the other: an A/A was seen to be off
    by a third. With several threads both sides use most cores anyway.
    """
    if point.device != "cpu" or point.threads > 1 or not hasattr(os, "sched_getaffinity"):
        return None
    return rng.choice(sorted(os.sched_getaffinity(0)))


def _prepare(first: Corner, second: Corner, core: int | None) -> None:
    """Have both sides come and prepare, one after the other; where one can't, the other is skipped."""
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
    """Take turns until the ratio is known or the budget spent; one that ends in its turn leaves them to the other."""

    def failed(name: str, error: Exception) -> None:
        if not isinstance(error, Ended):
            raise error
        corners[name].end(error)

    limits = Limits(**corners[SIDES[0]].request["limits"])
    taken = sample({name: corner.turn for name, corner in corners.items()}, SIDES[0], limits, rng, failed)
    for name, slots in taken.items():
        corners[name].finish(slots)
