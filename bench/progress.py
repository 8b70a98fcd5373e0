"""What is said while a sweep runs: a line when it opens, and one for each point."""

import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from bench.plan.case import POINT_COLUMNS
from bench.plan.sweep import Sweep
from bench.show import tables
from bench.show.words import parts, varying


class Progress:
    """Says a line for each point as it ends, with the time that the rest is likely to take."""

    def __init__(self, sweep: Sweep, total: int, say: Callable[[str], None], *, colour: bool) -> None:
        self._sweep = sweep
        self._total = total
        self._say = say
        self._colour = colour
        self._varying = varying(sweep.points)
        self._done = 0
        self._began_s = time.monotonic()

    def opened(self, folder: Path) -> None:
        """Say what is about to be measured and where it goes."""
        sweep, effort = self._sweep, self._sweep.effort
        shared = parts(sweep.points[0], set(POINT_COLUMNS) - self._varying)
        self._say(
            f"sweep {sweep.name}: {self._total} points x {len(sweep.implementations)} implementations, "
            f"{effort.processes} processes, target ±{effort.target:.1%}, {' '.join(shared)}"
        )
        self._say(f"results go to {folder}")

    def started(self) -> None:
        """Begin to count the time of points: the workers are there."""
        self._began_s = time.monotonic()

    def finished(self, rows: pd.DataFrame) -> None:
        """Say what came out at a point."""
        self._done += 1
        per_point_s = (time.monotonic() - self._began_s) / self._done
        line = tables.point_line(
            self._done,
            self._total,
            per_point_s * (self._total - self._done),
            rows,
            self._sweep.baseline,
            varying=self._varying,
            colour=self._colour,
        )
        self._say(line)
