"""The time budget for the rounds of each point, so that a sweep uses its `within_s` and not more."""

import statistics
import time

from bench.plan.sweep import Effort

MOST_TIMES = 5
"""The largest multiple of its budget that a point gets, so that a sweep with one point doesn't take minutes."""


class TimeBudget:
    """The seconds for the rounds of one point after the other.

    A sweep that would end before `within_s` spends the remaining time on rounds. A point's time besides its rounds is
    predicted as the median of the earlier points'. If there is no `within_s`, every point gets its budget.
    `points` is the number of points that are still to be measured.
    """

    def __init__(self, effort: Effort, points: int) -> None:
        self._effort = effort
        self._points = points
        self._beside_s: list[float] = []
        self._began_s = self._point_s = time.monotonic()
        self.budget_s = effort.budget_s

    def begin(self) -> None:
        """Set the budget of the next point."""
        self._point_s = time.monotonic()
        if self._effort.within_s is None or not self._beside_s:
            return
        left_s = self._effort.within_s - (self._point_s - self._began_s)
        share_s = left_s / max(1, self._points - len(self._beside_s)) - statistics.median(self._beside_s)
        least_s = self._effort.budget_s
        self.budget_s = min(max(share_s, least_s), MOST_TIMES * least_s)

    def end(self, rounds_s: float, points: int = 1) -> None:
        """Record the time that points measured together took besides their rounds, which took `rounds_s`."""
        beside_s = max(0.0, time.monotonic() - self._point_s - rounds_s)
        self._beside_s += [beside_s / points] * points
