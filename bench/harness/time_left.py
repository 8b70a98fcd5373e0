"""The time that a sweep still needs, from the points that are done and the work of those to come."""

import dataclasses
import time
from collections.abc import Iterable, Sequence

from bench.plan.case import Point
from bench.plan.layers import flops

KNOWN_S = 0.2
"""A point that takes less was measured earlier, and says nothing of the others."""

DOUBLING_FLOPS = {"cpu": 3e9, "cuda": 3e12}
"""The floating-point operations of a call at which a point takes twice as long as the smallest one, expected before
points are known. Of seven runs on a CPU, replayed, 2e9 to 4e9 suit best; no GPU has been timed."""

EXPECTED = 0.3
"""The weight of this expectation beside a point that is done."""

ENOUGH_WORKS = 4
"""The expectation counts until points of so many different works are done."""


class TimeLeft:
    """The remaining time of a sweep: a point takes a + b · work, fitted to the points that are done.

    Points that differ in their dtype alone are measured together, so they count as one.
    """

    def __init__(self, points: Iterable[Point], processes: int) -> None:
        self._processes = processes
        self._work: dict[Point, float] = {}
        for point in points:
            work = float(flops(point) or 0) / DOUBLING_FLOPS[point.device.partition(":")[0]]
            self._work[_together(point)] = self._work.get(_together(point), 0.0) + work
        self._open = set(self._work)
        self._known: list[tuple[float, float]] = []
        self._first: dict[Point, int] = {}

    def finished(self, point: Point, took_s: float) -> None:
        """Note that a point is done, and how long it took."""
        group = _together(point)
        if group in self._open and took_s >= KNOWN_S:
            self._known.append((self._work[group], took_s))
        self._open.discard(group)

    def left_s(self, current: Point | None = None, in_point_s: float = 0.0, process: int = 0) -> float | None:
        """Return the seconds that are left, None if nothing tells yet.

        `current` has been measured for `in_point_s` seconds, and now in this process, counted from 0. The first process
        of a point that is told here is the first of this session: a run that goes on has measured those before it.
        """
        group = None if current is None else _together(current)
        others = [work for each, work in self._work.items() if each in self._open and each != group]
        rest_s = 0.0
        if group in self._open and group is not None:
            whole_s = self._expected_s(self._work[group])
            first = self._first.setdefault(group, process)
            if done := process - first:
                paced_s = in_point_s * (self._processes - first) / done
                whole_s = paced_s if whole_s is None else max(whole_s, in_point_s) if in_point_s < whole_s else paced_s
            if not whole_s:
                return None
            rest_s = max(0.0, whole_s - in_point_s)
            if not self._known:  # only the first point has said anything
                fixed_s, per_work_s = _fit([(self._work[group], whole_s)])
                return rest_s + sum(fixed_s + per_work_s * work for work in others)
        expected = [self._expected_s(work) for work in others]
        if any(each is None for each in expected):
            return None
        return rest_s + sum(each for each in expected if each is not None)

    def _expected_s(self, work: float) -> float | None:
        if not self._known:
            return None
        fixed_s, per_work_s = _fit(self._known)
        return fixed_s + per_work_s * work


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


def _fit(known: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return a and b of a + b · work that has the least relative errors, neither of them negative.

    Until ENOUGH_WORKS are known, a and b are expected to be equal, as DOUBLING_FLOPS says.
    """
    ones = [1 / took_s for _, took_s in known]
    works = [work / took_s for work, took_s in known]
    a, b = sum(ones), sum(works)
    if len({work for work, _ in known}) < ENOUGH_WORKS:
        weight = EXPECTED * len(known) / sum(took_s for _, took_s in known)
        ones, works = [*ones, weight], [*works, -weight]
    aa, ab, bb = (
        sum(x * y for x, y in zip(*pair, strict=True)) for pair in ((ones, ones), (ones, works), (works, works))
    )
    determinant = aa * bb - ab * ab
    if determinant <= 1e-9 * aa * bb:  # the works are almost alike
        return a / aa, 0.0
    fixed_s, per_work_s = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
    if fixed_s < 0:
        return 0.0, b / bb
    return (fixed_s, per_work_s) if per_work_s >= 0 else (a / aa, 0.0)
