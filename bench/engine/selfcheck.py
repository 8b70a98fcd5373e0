"""A self-check: eager against a copy of itself, in as many processes as fit into a few minutes."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence

from bench.engine.run import Run
from bench.machine.facts import here
from bench.plan.case import Point
from bench.plan.sweep import Sweep, load_sweep
from bench.store.record import Record

TWIN, UNLIKE = "impls.control:adapt", "sdpa"
"""A copy of eager, and a kernel that another speed of the machine may slow by another factor."""

SWEEP = "article"
"""Two small points, which show the same disturbances as large ones in less time."""

LIMIT_S = 270.0
"""The most seconds of a self-check; with its start and end it stays under five minutes."""

PROCESSES, LEAST = 10, 3
"""The worker processes that measure each point, and the fewest that allow an estimate of their scatter."""

ROUNDS_S = 3.0
"""The seconds for the rounds of a point in one process: a few hundred samples."""


def sweep(threads: Sequence[int]) -> Sweep:
    """Return the sweep of a self-check, with each of these numbers of threads."""
    request = here(
        SWEEP,
        implementations=("eager", TWIN, UNLIKE),
        control=False,  # the copy is one
        overrides={"threads": [*threads]},
        effort={"processes": PROCESSES, "race": False, "budget_s": ROUNDS_S * PROCESSES},
    )
    article = load_sweep(request)
    return dataclasses.replace(article, name="selfcheck")


def measure(run: Run, limit_s: float = LIMIT_S, clock: Callable[[], float] = time.monotonic) -> Iterator[int]:
    """Measure every point in one process after the other, yielding their number, while the next one fits into the time.

    LEAST processes are measured in any case.
    """
    began = clock()
    longest_s = 0.0
    for number in range(1, run.sweep.effort.processes + 1):
        start = clock()
        if number > LEAST and start - began + longest_s > limit_s:
            return
        for point in run.sweep.points:
            run.measure(point, number)
        run.renew()
        longest_s = max(longest_s, clock() - start)
        yield number


def records(run: Run) -> dict[Point, dict[str, list[Record]]]:
    """Return the records of each point by implementation, without those that could not be measured."""
    return {
        point: {
            name: own
            for name in run.sweep.implementations
            if (own := [record for record in run.records(point, name) if record.status == "ok"])
        }
        for point in run.sweep.points
    }
