"""What is said while a sweep runs: a line when it opens, and one for each point."""

import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from bench.plan.sweep import Sweep
from bench.show import tables


class Progress:
    """Says a line for each point as it ends, with the time that the rest is likely to take."""

    def __init__(self, total: int, baseline: str, say: Callable[[str], None]) -> None:
        self._total = total
        self._baseline = baseline
        self._say = say
        self._done = 0
        self._began_s = time.monotonic()

    def opened(self, sweep: Sweep, folder: Path) -> None:
        """Say what is about to be measured and where it goes."""
        effort = sweep.effort
        self._say(
            f"sweep {sweep.name}: {self._total} points x {len(sweep.implementations)} implementations, "
            f"{effort.processes} processes, target ±{effort.target:.1%}; results go to {folder}"
        )

    def finished(self, rows: pd.DataFrame) -> None:
        """Say what came out at a point."""
        self._done += 1
        per_point_s = (time.monotonic() - self._began_s) / self._done
        remaining_s = per_point_s * (self._total - self._done)
        self._say(tables.point_line(self._done, self._total, remaining_s, rows, self._baseline))
