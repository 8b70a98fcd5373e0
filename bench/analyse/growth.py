"""Growth of latency and memory along an axis: exponents, and the fit a + b·N + c·N², or a + b·M over keys."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special
from scipy.optimize import brentq, nnls

from bench.analyse.axes import KEYS, SIZES, TOKENS, Axis, groups
from bench.analyse.rows import Row, by, log_latencies
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

COEFFICIENTS = {TOKENS: 3, KEYS: 2}
"""The coefficients of the fit along an axis: at a fixed number of queries, each key costs the same."""

PLACES = 3
"""The fewest places for a fit: many parabolas pass through fewer, and any two points lie on a line."""

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
    """The coefficients a, b and c of a + b·N + c·N², and the largest deviation of a latency from the curve, as a share.

    Over keys there is no c.
    """

    coefficients_s: tuple[Interval, ...]
    deviation: float

    def seconds(self, tokens: Array) -> Array:
        """Return the curve's latency at these numbers of tokens, or of keys."""
        return np.asarray(np.polynomial.Polynomial([each.value for each in self.coefficients_s])(tokens))


@dataclass(frozen=True)
class Growth:
    """The growth of one implementation along an axis; `fit` is None for fewer than three places or another axis."""

    implementation: str
    fit: Fit | None
    latency: tuple[Exponent, ...]
    memory: tuple[Exponent, ...]


@dataclass(frozen=True)
class Scaling:
    """A series of all implementations along one axis: rows, growth, and the one to use at each place."""

    axis: Axis
    rows: tuple[Row, ...]
    growths: tuple[Growth, ...]
    choices: Mapping[int, Choice]


def scalings(rows: Iterable[Row]) -> list[Scaling]:
    """Return every series among measured rows, by axis; in each, some implementation has at least two places."""
    measured = [*rows]
    series = [(axis, group) for axis in SIZES for group in groups(measured, axis)]
    return [_scaling(group, axis) for axis, group in series if max(map(len, by(group, "implementation").values())) > 1]


def exponents(places: Sequence[int], logs: Estimates) -> tuple[Exponent, ...]:
    """Return the slopes between neighbouring places, given logarithms of a quantity; exact ones have no intervals."""
    if len(places) < 2:
        return ()
    gaps = np.diff(np.log(np.asarray(places, dtype=np.float64)))
    weights = np.diff(np.eye(len(places)), axis=0) / gaps[:, None]  # [gaps, places]
    slopes = intervals(combined(weights, logs))
    return tuple(Exponent(*gap) for gap in zip(places[:-1], places[1:], slopes, strict=True))


def _scaling(group: Sequence[Row], axis: Axis) -> Scaling:
    choices = {place: choice(rows) for place, rows in sorted(by(group, axis.column).items())}
    growths = tuple(_growth(name, rows, axis) for name, rows in by(group, "implementation").items())
    return Scaling(axis, tuple(group), growths, choices)


def _growth(name: str, rows: Sequence[Row], axis: Axis) -> Growth:
    at = {row[axis.column]: row for row in rows}
    ordered = [at[place] for place in sorted(at)]
    sized = [row for row in ordered if row["memory_bytes"]]
    return Growth(
        name,
        fit(ordered, axis) if axis in COEFFICIENTS else None,
        exponents([row[axis.column] for row in ordered], log_latencies(ordered)),
        exponents([row[axis.column] for row in sized], exact([np.log(row["memory_bytes"]) for row in sized])),
    )


def fit(rows: Sequence[Row], axis: Axis = TOKENS) -> Fit | None:
    """Return the curve through the latencies of one implementation along an axis, None for fewer than three places.

    No coefficient is negative. Latencies weigh by their relative errors; intervals follow from the scatter of the
    processes at each place, or from the deviations of the latencies from the curve if these are larger (Birge 1932).
    Without an interval at every place the coefficients have none, and latencies weigh alike.
    """
    if len(rows) < PLACES:
        return None
    count = COEFFICIENTS[axis]
    tokens = np.array([row[axis.column] for row in rows], dtype=np.float64)
    logs = log_latencies(rows)
    latencies = np.exp(logs.value)
    weights = 1 / (latencies * (logs.error if np.all(logs.error > 0) else 1.0))
    powers = np.vander(tokens, count, increasing=True)  # [places, coefficients]
    weighted, values = powers * weights[:, None], latencies * weights
    lengths = np.linalg.norm(weighted, axis=0)
    unit = weighted / lengths
    # the errors of coefficients that could be negative
    inverse = np.asarray(np.linalg.pinv(unit), dtype=np.float64)
    errors = combined(inverse, Estimates(values, values * logs.error, logs.freedom))
    intervals = [_coefficient(unit, values, errors, index) for index in range(count)]
    scaled = tuple(
        Interval(of.value / length, of.low / length, of.high / length)
        for of, length in zip(intervals, lengths.tolist(), strict=True)
    )
    curve = powers @ np.array([each.value for each in scaled])
    return Fit(scaled, float(np.max(np.abs(latencies / curve - 1))))


def _coefficient(powers: Array, latencies: Array, errors: Estimates, index: int) -> Interval:
    """Return a coefficient with the range of its values that leave not much more squares than the best one does.

    `powers` have the shape [places, coefficients] and columns of length 1; they and the latencies are over the errors
    of the latencies. The limit is a t quantile, on the scale of the coefficient's own error. If another coefficient
    becomes 0, two have changed, and the limit is an F quantile: with t alone, simulated intervals of 95 % contained the
    truth in only 88 %.
    """
    best, least = _least_squares(powers, latencies)
    value, error, freedom = (float(each[index]) for each in (best, errors.error, errors.freedom))
    if math.isnan(error):
        return Interval(value, math.nan, math.nan)
    assumed = np.linalg.inv(powers.T @ powers)[index, index]
    spare = len(latencies) - int(np.count_nonzero(best))
    excess = max(1.0, least / spare) if spare else 1.0  # how many times more squares are left than errors explain
    scale = error**2 / float(assumed) * excess
    of_one = scale * float(t_quantile(freedom)) ** 2
    of_two = scale * 2 * float(special.fdtri(2, freedom, CONFIDENCE))
    others = np.delete(powers, index, axis=1)

    def beyond(candidate: float) -> float:
        rest, left = _least_squares(others, latencies - powers[:, index] * candidate)
        return left - least - (of_one if rest.all() else of_two)

    low = float(brentq(beyond, 0, value, rtol=PRECISION)) if beyond(0) > 0 else 0.0
    step = float(half_widths(errors)[index])
    while beyond(value + step) <= 0:
        step *= 2
    return Interval(value, low, float(brentq(beyond, value, value + step, rtol=PRECISION)))


def _least_squares(powers: Array, latencies: Array) -> tuple[Array, float]:
    """Return the coefficients, none negative, with the smallest sum of squared residuals, and this sum."""
    coefficients, norm = nnls(powers, latencies)
    return np.asarray(coefficients), float(norm) ** 2
