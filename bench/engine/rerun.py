"""Rows of a comparison measured again: a race of both sides, each with the interpreter of its own run."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.engine.duel import Duel, grounds
from bench.plan.case import AFTER, BEFORE, Point
from bench.plan.errors import NotComparable
from bench.plan.sides import Side
from bench.plan.sweep import Effort, Sweep, altered
from bench.store import environment
from bench.store.environment import Environment

PROCESSES = 5
"""The processes of each side before the first verdict: two or three can hardly show a change beyond the margin."""


def sweeps(disputed: Mapping[str, Sequence[Point]], before: Effort, asked: Mapping[str, Any]) -> list[Sweep]:
    """Return the race of each implementation; `within_s` is the time of all, and each has its share by its points.

    Each process has the seconds for its rounds that it had `before`. Raises WrongRequest for impossible values.
    """
    budget_s = before.budget_s / before.processes * PROCESSES
    own = {"processes": PROCESSES, "budget_s": budget_s, "race": True, "spread_s": None, "check_memory": False}
    within_s, rows = asked.get("within_s"), sum(map(len, disputed.values()))
    return [
        altered(
            Sweep("rerun", tuple(points), (name,), name, before),
            (),
            {**own, **asked, "within_s": within_s and within_s * len(points) / rows},
        )
        for name, points in disputed.items()
    ]


@contextmanager
def opened(sweep: Sweep, pythons: tuple[str, str], folder: Path) -> Iterator[Duel]:
    """Open the race of a sweep's implementation between two interpreters, in a folder of its own inside this one."""
    name = sweep.baseline
    sides = (Side(BEFORE, name, python=pythons[0]), Side(AFTER, name, python=pythons[1]))
    race = dataclasses.replace(sweep, implementations=(BEFORE, AFTER), baseline=BEFORE)
    points, own = (sweep.points, sweep.points), folder / name.replace(":", ".")
    with grounds(sides, 1) as grounded, Duel(race, own, grounded, points) as duel:
        yield duel


def check(duel: Duel, measured: Mapping[str, Environment | None], pythons: Sequence[str]) -> None:
    """Raise NotComparable if an interpreter is not the one that measured its side; `measured` is by side."""
    for (side, before), python, here in zip(measured.items(), pythons, duel.environments, strict=False):
        if before and (unlike := environment.differences(before, here)):
            raise NotComparable(
                f"--python {python} is not what {side} was measured with: {'; '.join(unlike)}; "
                "--force measures it all the same"
            )
