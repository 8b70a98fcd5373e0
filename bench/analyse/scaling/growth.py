"""Growth of latency and memory along an axis: exponents, fits, the fastest, and the share of each stage."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.analyse.scaling.crossover import Crossover, crossovers
from bench.analyse.scaling.fit import Fit, fit
from bench.analyse.scaling.series import AXES, TOKENS, Axis, Row, by, groups, log_latencies
from bench.analyse.standing import Choice, choice
from bench.stats.estimates import Estimates, Interval, combined, exact, intervals
from bench.store.profile import Profile


@dataclass(frozen=True)
class Exponent:
    """The slope of log quantity over log place between two neighbours: 2 if twice as many cost four times as much."""

    start: int
    end: int
    slope: Interval


@dataclass(frozen=True)
class Growth:
    """The growth of one implementation along an axis; `fit` is None for fewer than three places or another axis."""

    implementation: str
    fit: Fit | None
    latency: tuple[Exponent, ...]
    memory: tuple[Exponent, ...]


@dataclass(frozen=True)
class Scaling:
    """A series of all implementations along one axis: rows, growth, the one to use at each place, and crossovers."""

    axis: Axis
    rows: tuple[Row, ...]
    growths: tuple[Growth, ...]
    choices: Mapping[int, Choice]
    crossovers: tuple[Crossover, ...]


def scalings(rows: Iterable[Row]) -> list[Scaling]:
    """Return every series among measured rows, by axis; in each, some implementation has at least two places."""
    return [_scaling(group, axis) for axis, group in _series(rows)]


def has_series(rows: Iterable[Row]) -> bool:
    """Return whether measured rows have a series, so that there is something to fit."""
    return bool(_series(rows))


def exponents(places: Sequence[int], logs: Estimates) -> tuple[Exponent, ...]:
    """Return the slopes between neighbouring places, given logarithms of a quantity; exact ones have no intervals."""
    if len(places) < 2:
        return ()
    gaps = np.diff(np.log(np.asarray(places, dtype=np.float64)))
    weights = np.diff(np.eye(len(places)), axis=0) / gaps[:, None]  # [gaps, places]
    slopes = intervals(combined(weights, logs))
    return tuple(Exponent(*gap) for gap in zip(places[:-1], places[1:], slopes, strict=True))


def _series(rows: Iterable[Row]) -> list[tuple[Axis, list[Row]]]:
    """Return the groups of rows along each axis in which one implementation at least has two places."""
    known = list(rows)
    series = [(axis, group) for axis in AXES for group in groups(known, axis)]
    return [
        (axis, group) for axis, group in series if any(len(own) > 1 for own in by(group, "implementation").values())
    ]


def _scaling(group: Sequence[Row], axis: Axis) -> Scaling:
    choices = {place: choice(rows) for place, rows in sorted(by(group, axis.column).items())}
    leaders = {place: known.names for place, known in choices.items()}
    changes = crossovers(group, leaders) if axis is TOKENS else []
    growths = tuple(_growth(name, rows, axis) for name, rows in by(group, "implementation").items())
    return Scaling(axis, tuple(group), growths, choices, tuple(changes))


def _growth(name: str, rows: Sequence[Row], axis: Axis) -> Growth:
    at = {row[axis.column]: row for row in rows}
    ordered = [at[place] for place in sorted(at)]
    sized = [row for row in ordered if row["memory_bytes"]]
    return Growth(
        name,
        fit(ordered) if axis is TOKENS else None,
        exponents([row[axis.column] for row in ordered], log_latencies(ordered)),
        exponents([row[axis.column] for row in sized], exact([np.log(row["memory_bytes"]) for row in sized])),
    )


Shares = dict[str, float]
"""Shares by stage, in the order of a call; they sum to 1."""


@dataclass(frozen=True)
class StageGrowth:
    """Profiles of one implementation that differ in their tokens alone, fewest first, with the shares of each."""

    profiles: tuple[Profile, ...]
    shares: tuple[Shares, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """The tokens of each profile."""
        return tuple(profile.case.point.num_tokens for profile in self.profiles)

    @property
    def stages(self) -> tuple[str, ...]:
        """All stages, in the order of a call."""
        return tuple(dict.fromkeys(name for shares in self.shares for name in shares))

    def share_of(self, stages: Iterable[str]) -> tuple[float, ...]:
        """Return the sum of the shares of some stages at each place."""
        wanted = tuple(stages)
        return tuple(sum(shares.get(name, 0.0) for name in wanted) for shares in self.shares)


def stage_growths(profiles: Iterable[Profile]) -> Iterator[StageGrowth]:
    """Yield each series of tokens among the profiles that have stages; a single point is none."""
    rows = [{**each.case.columns(), "profile": each} for each in profiles if each.stages]
    for of_one in by(rows, "implementation").values():
        for group in groups(of_one, TOKENS):
            ordered = [row["profile"] for row in sorted(group, key=lambda row: int(row[TOKENS.column]))]
            yield StageGrowth(tuple(ordered), tuple(map(shares_by_stage, ordered)))


def shares_by_stage(profile: Profile) -> Shares:
    """Return the share of each stage, its forward and backward part added, in the time of all stages."""
    whole_s = sum(stage.time_s for stage in profile.stages)
    shares = dict.fromkeys((stage.name for stage in profile.stages), 0.0)
    for stage in profile.stages:
        shares[stage.name] += stage.time_s / whole_s
    return shares
