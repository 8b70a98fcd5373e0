"""A self-check: eager against a copy of itself, in as many processes as a few minutes hold."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence

from bench.analyse.summary import log_ratios
from bench.engine.run import Run
from bench.plan.case import Point
from bench.plan.sweep import Sweep, load_sweep

TWIN = "impls.control:adapt"

SWEEP = "article"
"""Two small points: what disturbs a machine shows there as it does on large ones, and sooner."""

LIMIT_S = 270.0
"""The seconds that a self-check takes at most: with the time to begin and to end, under five minutes."""

PROCESSES, LEAST = 10, 3
"""Worker processes that measure each point, and the fewest that tell a scatter."""

ROUNDS_S = 2.0
"""Seconds for the rounds of a point in one process: a few hundred slots."""

TARGET = 0.0001
"""The half-width that rounds aim at: so fine that they take their budget."""


def sweep(threads: Sequence[int]) -> Sweep:
    """Return what a self-check measures, at so many threads each."""
    asked = load_sweep(
        SWEEP,
        implementations=("eager", TWIN),
        overrides={"threads": [*threads]},
        effort={"processes": PROCESSES, "target": TARGET, "budget_s": ROUNDS_S * PROCESSES},
    )
    return dataclasses.replace(asked, name="selfcheck")


def measure(run: Run, limit_s: float = LIMIT_S, clock: Callable[[], float] = time.monotonic) -> Iterator[int]:
    """Measure every point in one process after the other, yielding their number, while the next one fits the time.

    LEAST are measured in any case.
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


def ratios(run: Run) -> dict[Point, list[float]]:
    """Return the logarithms of the copy's ratios by point, one per process."""
    return {point: log_ratios(run.records(point, TWIN), run.records(point, "eager")) for point in run.sweep.points}
