"""How long points take beside each other by their work, and how much more a run needs for its answers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.plan.case import Point
from bench.plan.layers import flops

if TYPE_CHECKING:
    from bench.analyse.summary import Summary

LEAST_RACE_S = 30.0
"""A race with fewer seconds left, about the start of its servers and a replicate, does not go on in a new session."""

STEP_S = 10
"""A time that is advised is a multiple of this."""


def work(point: Point) -> float:
    """Return how long a point takes beside the smallest one, which takes 1."""
    return 1.0 + float(flops(point) or 0) / point.kind.doubling_flops


def waiting(summary: "Summary", points: Sequence[Point]) -> list[Point]:
    """Return the points of which nothing was measured."""
    return [point for point in points if point not in summary]


def within_s(summary: "Summary", points: Sequence[Point]) -> int | None:
    """Return the time of a race that is expected to answer each point, and None if all have a good answer.

    It contains what was measured. Points of which nothing was measured take as long as the others, by their work.
    """
    measured_s, others = summary.measured_s(), waiting(summary, points)
    left_s = sum(summary.further_s(point) for point in points if point in summary)
    if others:
        done = sum(work(point) for point in points if point in summary)
        left_s += measured_s / done * sum(work(point) for point in others) if done else 0.0
    if not (left_s or others):
        return None
    return STEP_S * math.ceil((measured_s + left_s + LEAST_RACE_S) / STEP_S)


def processes(summary: "Summary", before: int) -> int | None:
    """Return the processes that are expected to give each point a good answer, None if they have one.

    So many measured each implementation `before`.
    """
    spent_s = {point: summary.measured_s([point]) for point in summary}
    growth = max((summary.further_s(point) / took_s for point, took_s in spent_s.items() if took_s), default=0.0)
    return math.ceil(before * (1 + growth)) if growth else None
