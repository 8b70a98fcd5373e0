"""The time that a sweep still needs, from the points that are done and the work of those to come."""

import dataclasses
import time
from collections.abc import Iterable

from bench.plan.case import Point
from bench.plan.layers import flops

KNOWN_S = 0.2
"""A point that takes less was measured earlier, and says nothing of the others."""

DOUBLING_FLOPS = {"cpu": 3e9, "cuda": 3e12}
"""The floating-point operations of a call at which a point takes twice as long as the smallest one. Of seven runs on a
CPU, replayed, 2e9 to 4e9 suit best; no GPU has been timed."""


class TimeLeft:
    """The remaining time of a sweep: a point takes as long as those that are done took, by its work.

    Points that differ in their dtype alone are measured together, so they count as one.
    """

    def __init__(self, points: Iterable[Point], processes: int) -> None:
        self._processes = processes
        self._work: dict[Point, float] = {}
        for point in points:
            work = float(flops(point) or 0) / DOUBLING_FLOPS[point.device.partition(":")[0]]
            self._work[_together(point)] = self._work.get(_together(point), 1.0) + work
        self._open = set(self._work)
        self._took_s, self._done = 0.0, 0.0
        self._first: dict[Point, int] = {}

    def finished(self, point: Point, took_s: float) -> None:
        """Note that a point is done, and how long it took."""
        group = _together(point)
        if group in self._open and took_s >= KNOWN_S:
            self._took_s += took_s
            self._done += self._work[group]
        self._open.discard(group)

    def left_s(self, current: Point | None = None, in_point_s: float = 0.0, process: int = 0) -> float | None:
        """Return the seconds that are left, None if nothing tells yet.

        `current` has been measured for `in_point_s` seconds, and now in this process. It counts from 0 at the start of
        the run; the first one seen here is where a run that goes on began.
        """
        others = sum(self._work[group] for group in self._open)
        per_work_s = self._took_s / self._done if self._done else None
        rest_s = 0.0
        if current is not None and (group := _together(current)) in self._open:
            work, first = self._work[group], self._first.setdefault(group, process)
            others -= work
            whole_s = None if per_work_s is None else per_work_s * work
            if (done := process - first) and (whole_s is None or in_point_s >= whole_s):
                whole_s = in_point_s * (self._processes - first) / done
            if not whole_s:
                return None
            rest_s = max(0.0, whole_s - in_point_s)
            per_work_s = per_work_s or whole_s / work
        if per_work_s is None:
            return None if others else rest_s
        return rest_s + per_work_s * others


class Until(TimeLeft):
    """The remaining time of a race that ends at `end_s` of the monotonic clock, at the latest."""

    def __init__(self, end_s: float) -> None:
        super().__init__((), 1)
        self._end_s = end_s

    def left_s(self, *_now: object) -> float:
        """Return the seconds that are left at most."""
        return max(0.0, self._end_s - time.monotonic())


def _together(point: Point) -> Point:
    return dataclasses.replace(point, dtype="float32")
