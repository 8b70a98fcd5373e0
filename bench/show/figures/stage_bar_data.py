"""The data of stage bars: each profile of a point as segments of time, one after another."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.profile import time_s
from bench.show.operator_categories import CATEGORY_COLOURS, OTHER, category
from bench.show.palette import stage_colour
from bench.store.profile import BACKWARD, Operator, Profile

MOST_NAMED, LEAST_NAMED = 6, 0.01
"""The largest number of named operators in a bar, and the least share of an operator that is named."""

LONGEST = 34
"""An operator's name is cut to this number of characters."""

UNSAID = ("aten::", "_scaled_dot_product_")
"""Prefixes of operators' names that tell nothing."""


@dataclass(frozen=True)
class Segment:
    """A part of a bar; one of the backward pass is hatched."""

    name: str
    time_s: float
    colour: str
    is_backward: bool = False


@dataclass(frozen=True)
class Bar:
    """The time of one case by segments, and its latency without the profiler."""

    implementation: str
    segments: tuple[Segment, ...]
    timed_s: float

    @property
    def sum_s(self) -> float:
        """The time of all segments."""
        return sum(segment.time_s for segment in self.segments)

    @property
    def residual_s(self) -> float:
        """The time of the whole beyond its segments; below 0 if the profiler slowed these down."""
        return self.timed_s - self.sum_s


def bars(profiles: Sequence[Profile]) -> list[Bar]:
    """Return a bar for each profile of a point: those in stages first, then the slowest first."""
    ordered = sorted(profiles, key=lambda profile: (not profile.stages, -profile.timed_s))
    return [Bar(each.case.implementation, _segments(each), each.timed_s) for each in ordered]


def _segments(profile: Profile) -> tuple[Segment, ...]:
    return _stages(profile) if profile.stages else _operators(profile.operators)


def _stages(profile: Profile) -> tuple[Segment, ...]:
    return tuple(
        Segment(
            f"{stage.name}, backward" if stage.direction == BACKWARD else stage.name,
            stage.time_s,
            stage_colour(stage.name),
            stage.direction == BACKWARD,
        )
        for stage in profile.stages
    )


def _operators(operators: Sequence[Operator]) -> tuple[Segment, ...]:
    """Return the largest operators in the order of the work they do, and all others as one at the end."""
    ordered = sorted(operators, key=time_s, reverse=True)
    least_s = LEAST_NAMED * sum(map(time_s, ordered))
    largest = [operator for operator in ordered[:MOST_NAMED] if time_s(operator) >= least_s]
    rest = ordered[len(largest) :]
    places = list(CATEGORY_COLOURS)
    largest.sort(key=lambda operator: places.index(category(operator.name)))
    segments = [Segment(short(each.name), time_s(each), CATEGORY_COLOURS[category(each.name)]) for each in largest]
    if rest:
        segments.append(Segment(f"{len(rest)} {OTHER}", sum(map(time_s, rest)), CATEGORY_COLOURS[OTHER]))
    return tuple(segments)


def short(name: str) -> str:
    """Return an operator's name, short enough for a picture."""
    for beginning in UNSAID:
        name = name.removeprefix(beginning)
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
