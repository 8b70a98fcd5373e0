"""Latency against tokens as a + b·N + c·N²: the fixed time, the time of a token, and that of a pair of tokens."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import brentq, nnls

from bench.analyse.scaling.series import TOKENS, Row, log_latencies
from bench.stats.estimates import Estimates, Interval, combined, half_widths
from bench.stats.replicates import CONFIDENCE, Array, t_quantile

COEFFICIENTS = 3
"""The fewest places for a fit: many parabolas pass through fewer."""

PRECISION = 1e-6
"""Relative precision of the ends of an interval: far finer than the printed digits."""


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
