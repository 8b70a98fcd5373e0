"""How long the rounds of each point may take, so that a sweep uses the time that it may take and no more."""

import statistics
import time

from bench.plan.sweep import Effort

MOST_TIMES = 5
"""A point gets no more than so many times its budget: one point alone is no reason to measure it for minutes."""


class Allowance:
    """The seconds of rounds for one point after the other.

    A sweep that may take `within_s` and would be done early spends what is left on rounds; what a point takes beside
    its rounds is expected to be what those before it took. Without a limit every point gets its budget.
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

    def end(self) -> None:
        """Learn from a point that was measured."""
        self._beside_s.append(max(0.0, time.monotonic() - self._point_s - self.budget_s))
