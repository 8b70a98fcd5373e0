"""Growth of latency and memory along an axis: exponents, the fit a + b·N + c·N², and the share of each stage."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import brentq, nnls

from bench.analyse.series import AXES, TOKENS, Axis, Crossover, Row, by, crossovers, groups, log_latencies
from bench.analyse.standing import Choice, choice
from bench.stats.estimates import (
    CONFIDENCE,
    Array,
    Estimates,
    Interval,
    combined,
    exact,
    half_widths,
    intervals,
    t_quantile,
)
from bench.store.profile import Profile

COEFFICIENTS = 3
"""The fewest places for a fit: many parabolas pass through fewer."""

PRECISION = 1e-6
"""Relative precision of the ends of an interval: far finer than the printed digits."""


@dataclass(frozen=True)
class Exponent:
    """The slope of log quantity over log place between two neighbours: 2 if twice as many cost four times as much."""

    start: int
    end: int
    slope: Interval


@dataclass(frozen=True)
class Fit:
    """The coefficients of a + b·N + c·N², and the largest deviation of a latency from the curve, as a share."""

    fixed_s: Interval
    per_token_s: Interval
    per_pair_s: Interval
    deviation: float

    def seconds(self, tokens: Array) -> Array:
        """Return the curve's latency at these numbers of tokens."""
        return self.fixed_s.value + self.per_token_s.value * tokens + self.per_pair_s.value * tokens**2


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


@dataclass(frozen=True)
class _Squares:
    """A weighted least-squares problem: powers of the places, and latencies, both over the errors of the latencies."""

    powers: Array  # [places, coefficients], each column of length 1
    latencies: Array  # [places]

    def best(self) -> Array:
        """Return the coefficients, none negative, with the smallest sum of squares."""
        return np.asarray(nnls(self.powers, self.latencies)[0])

    def left(self, coefficients: Array) -> float:
        """Return the sum of squared residuals of these coefficients."""
        return float(np.sum((self.powers @ coefficients - self.latencies) ** 2))

    def without(self, index: int, value: float) -> "_Squares":
        """Return the problem for the other coefficients if one of them is fixed at this value."""
        return _Squares(np.delete(self.powers, index, axis=1), self.latencies - self.powers[:, index] * value)


def fit(rows: Sequence[Row]) -> Fit | None:
    """Return the curve through the latencies of one implementation, None for fewer than three places.

    No coefficient is negative. Latencies weigh by their relative errors; intervals follow from the scatter of the
    processes at each place, or from the deviations of the latencies from the curve if these are larger (Birge 1932).
    Without an interval at every place the coefficients have none, and latencies weigh alike.
    """
    if len(rows) < COEFFICIENTS:
        return None
    tokens = np.array([row[TOKENS.column] for row in rows], dtype=np.float64)
    logs = log_latencies(rows)
    latencies = np.exp(logs.value)
    weights = 1 / (latencies * (logs.error if np.all(logs.error > 0) else 1.0))
    powers = np.vander(tokens, COEFFICIENTS, increasing=True)  # [places, coefficients]
    lengths = np.linalg.norm(powers * weights[:, None], axis=0)
    squares = _Squares(powers * weights[:, None] / lengths, latencies * weights)
    relative = Estimates(squares.latencies, squares.latencies * logs.error, logs.freedom)
    # the errors of coefficients that could be negative
    errors = combined(np.asarray(np.linalg.pinv(squares.powers), dtype=np.float64), relative)
    best = squares.best()
    fixed, per_token, per_pair = (
        _scaled(_interval(squares, best, errors, index), length) for index, length in enumerate(lengths.tolist())
    )
    deviations = np.abs(latencies / (powers @ (best / lengths)) - 1)
    return Fit(fixed, per_token, per_pair, float(np.max(deviations)))


def _interval(squares: _Squares, best: Array, errors: Estimates, index: int) -> Interval:
    """Return a coefficient with the range of its values that leave not much more squares than the best one does.

    The limit is a t quantile, on the scale of the coefficient's own error. If another coefficient becomes 0, two have
    changed, and the limit is an F quantile: with t alone, simulated intervals of 95 % contained the truth in only 88 %.
    """
    value, error, freedom = (float(values[index]) for values in (best, errors.error, errors.freedom))
    if math.isnan(error):
        return Interval(value, math.nan, math.nan)
    least = squares.left(best)
    assumed = np.linalg.inv(squares.powers.T @ squares.powers)[index, index]
    spare = len(squares.latencies) - int(np.count_nonzero(best))
    excess = max(1.0, least / spare) if spare else 1.0  # how many times more squares are left than errors explain
    unit = error**2 / float(assumed) * excess
    of_one = unit * float(t_quantile(freedom)) ** 2
    of_two = unit * 2 * float(stats.f.ppf(CONFIDENCE, 2, freedom))

    def beyond(candidate: float) -> float:
        rest = squares.without(index, candidate)
        others = rest.best()
        return rest.left(others) - least - (of_one if others.all() else of_two)

    low = float(brentq(beyond, 0, value, rtol=PRECISION)) if beyond(0) > 0 else 0.0
    step = float(half_widths(errors)[index])
    while beyond(value + step) <= 0:
        step *= 2
    return Interval(value, low, float(brentq(beyond, value, value + step, rtol=PRECISION)))


def _scaled(of: Interval, length: float) -> Interval:
    return Interval(of.value / length, of.low / length, of.high / length)
