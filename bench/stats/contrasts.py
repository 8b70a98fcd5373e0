"""The differences between the implementations of a point, with their errors.

A point is a block design: its replicates are blocks, and in each an implementation has one value, the midmean of its
rounds relative to the common level of the rounds. The variance of a value has two parts: one from its rounds, and one
between processes, which is estimated over the whole run. The error of a pair of implementations is moderated (Smyth
2004, Linear models and empirical Bayes methods): the pair's own variance is shrunk towards the one that these two parts
predict, the more so the better they predict the run's pairs. A pair has 3 degrees of freedom from four replicates
alone, and 10 to 20 with this.

The control is the baseline under a second name. If it differs from the baseline by more than these errors say, all of
them are too small and are widened: in full if that is hardly chance, else by less.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special
from scipy.sparse.csgraph import connected_components

from bench.stats.estimates import TRIMMED, Array, Estimates, joined

LEAST_PROCESS_SD = 0.003
"""The least standard deviation between processes, as a log ratio: two processes of one program differ by some 0.2 %."""

MOST_POINTS = 300
"""The most points from which a run's prior is estimated, evenly spread over it; more don't improve it."""

MOST_FREEDOM = 1e9
"""A finite stand-in for infinite degrees of freedom, because infinity times 0 is NaN."""

SMALLEST_TAIL = -700.0
"""The logarithm of the smallest probability that is distinguished from 0, at 37 standard errors."""

USUAL_EXCESS, EXCESS_SD = 0.33, 0.25
"""Mean and standard deviation over runs of the excess variance of pairs' log variances: the prior for short runs. In
nine stored runs it was -0.5 to 1.0, in the most precise ones 0.1, 0.3 and 0.5. Few replicates hardly determine it:
with two of them the estimate has a standard deviation of 1.2."""

USUAL_POINTS, CHANCE = 20, 0.01
"""A control's mean square deviation is averaged with USUAL_POINTS points whose errors are right, unless chance makes it
as large in less than CHANCE of runs. In 32 stored runs of 4 to 200 points it was 0.85 on average, with little more
variance than by chance (0.18 against 0.15), which is worth 60 points; in single ones it was up to 2.2."""

STEPS = 20
"""The most steps in which round levels and implementations' midmeans are fitted to each other; two usually suffice."""


@dataclass(frozen=True)
class Values:
    """The values of a point as [implementation, replicate]; NaN where one wasn't measured.

    `logs` are logarithms of times relative to the common level of the replicate's rounds. `variances` are the
    variances that each value's rounds predict.
    """

    names: tuple[str, ...]
    logs: Array
    variances: Array

    @property
    def freedom(self) -> int:
        """The degrees of freedom of the interaction between implementations and replicates."""
        measured = ~np.isnan(self.logs)
        measured = measured[measured.any(axis=1)]
        return int(measured.sum() - len(measured) - measured.any(axis=0).sum()) + len({*_parts(measured).tolist()})


@dataclass(frozen=True)
class Common:
    """A variance that many share; it adds `freedom` degrees of freedom to each one's own.

    The sum is at most `most_freedom`, the degrees of freedom of all of them.
    """

    variance: float
    freedom: float
    most_freedom: float

    def moderate(self, variances: Array, freedoms: Array) -> tuple[Array, Array]:
        """Return variances shrunk to the common one, and their degrees of freedom; NaN and 0 if both have none."""
        common = min(self.freedom, MOST_FREEDOM)
        freedom = common + freedoms
        squares = common * self.variance + np.where(freedoms > 0, freedoms * variances, 0.0)
        shrunk = np.divide(squares, freedom, out=np.full_like(squares, np.nan), where=freedom > 0)
        return shrunk, np.minimum(freedom, self.most_freedom)


@dataclass(frozen=True)
class Prior:
    """The variances that are pooled over a run, for the errors of each point.

    `process_variance` is the variance between processes. `scatter` is a pair's variance relative to the predicted one.
    All errors are multiplied by `factor`.
    """

    process_variance: float
    scatter: Common
    factor: float = 1.0


@dataclass(frozen=True)
class Contrasts:
    """The differences of log times, row minus column, with standard errors and degrees of freedom.

    A difference is NaN between implementations that no chain of shared replicates joins; an error and its degrees of
    freedom are NaN if the scatter is unknown, as with one process.
    """

    names: tuple[str, ...]
    difference: Array
    error: Array
    freedom: Array

    def speedup(self, name: str, baseline: str) -> Estimates:
        """Return the log ratio of the baseline's time to an implementation's."""
        at = self.names.index(baseline), self.names.index(name)
        return Estimates(self.difference[at], self.error[at], self.freedom[at])

    def without(self, name: str) -> "Contrasts":
        """Return the contrasts without one implementation."""
        return self.only([each for each in self.names if each != name])

    def only(self, names: Sequence[str]) -> "Contrasts":
        """Return the contrasts of some of the implementations."""
        kept = [self.names.index(name) for name in names]
        pairs = np.ix_(kept, kept)
        return Contrasts(tuple(names), self.difference[pairs], self.error[pairs], self.freedom[pairs])


def values(times_s: Mapping[str, Mapping[Any, Mapping[int, float]]]) -> Values:
    """Return the values of a point from seconds by implementation, replicate and round; replicates are sorted."""
    names = tuple(name for name, of in times_s.items() if of)
    replicates = sorted({number for of in times_s.values() for number in of})
    shape = len(names), len(replicates)
    logs, counts, units, freedoms = (np.full(shape, np.nan), *(np.zeros(shape) for _ in range(3)))
    for column, number in enumerate(replicates):
        rows = [row for row, name in enumerate(names) if times_s[name].get(number)]
        if not rows:
            continue
        middles, spread = _middles(_matrix([times_s[names[row]][number] for row in rows]))
        logs[rows, column] = middles
        counts[rows, column], units[rows, column], freedoms[rows, column] = spread
    freedom = freedoms.sum(axis=1)
    # a row's own variance over all its replicates; the others' median if it has too few rounds
    unit = np.divide((units * freedoms).sum(axis=1), freedom, out=np.full(len(names), np.nan), where=freedom > 0)
    unit = np.where(np.isnan(unit), np.median(unit[freedom > 0]) if freedom.any() else 0.0, unit)
    variances = np.divide(unit[:, None], counts, out=np.full(shape, np.nan), where=counts > 0)
    return Values(names, logs, variances)


def prior(points: Sequence[Values], control: tuple[str, str] | None = None) -> Prior:
    """Return the variances that are pooled over points; `control` has the names of the control and the baseline.

    The variance between processes is chosen so that, over all pairs, predicted and observed variances agree.
    """
    some = points[:: max(1, math.ceil(len(points) / MOST_POINTS))]
    least = LEAST_PROCESS_SD**2

    def excess(process_variance: float) -> float:
        return _prediction(some, process_variance)[0]

    process_variance = least
    if excess(least) > 0:
        process_variance = float(optimize.brentq(excess, least, 1.0)) if excess(1.0) < 0 else 1.0
    scatter = Common(1.0, _prediction(some, process_variance)[1], float(sum(each.freedom for each in points)))
    pooled = Prior(process_variance, scatter)
    pairs = [contrasts(each, pooled).speedup(*control) for each in some if control and {*control} <= {*each.names}]
    return Prior(process_variance, scatter, widening(normal_scores(joined(pairs))))


def is_chance(scores: Array) -> bool:
    """Return whether a control's deviations, as normal scores, can be this large by chance if errors are right."""
    return not scores.size or float(special.chdtrc(scores.size, np.sum(scores**2))) >= CHANCE


def widening(scores: Array) -> float:
    """Return the factor (1.0 or more) by which errors are widened, given a control's deviations as normal scores."""
    usual = USUAL_POINTS if is_chance(scores) else 0
    return max(1.0, math.sqrt((usual + np.sum(scores**2)) / (usual + scores.size)))


def normal_scores(of: Estimates) -> Array:
    """Return the deviations from 0 as normal scores: their mean square is 1 if all are truly 0 and errors are right.

    Estimates without an error are left out.
    """
    has_error = of.error > 0
    deviations = of.value[has_error] / of.error[has_error]
    with np.errstate(divide="ignore"):  # a tail may be smaller than any number
        tails = np.log(special.stdtr(of.freedom[has_error], -np.abs(deviations)))
    return np.asarray(-np.sign(deviations) * special.ndtri_exp(np.maximum(tails, SMALLEST_TAIL)))


def contrasts(of: Values, pooled: Prior) -> Contrasts:
    """Return the differences of the implementations of a point by weighted least squares, with moderated errors."""
    measured = ~np.isnan(of.logs)
    weights = np.where(measured, 1 / (pooled.process_variance + np.where(measured, of.variances, 1.0)), 0.0)
    logs = np.where(measured, of.logs, 0.0)
    total = weights.sum(axis=0)
    levels = (weights * logs).sum(axis=0) / total
    information = np.diag(weights.sum(axis=1)) - (weights / total) @ weights.T
    covariance = np.linalg.pinv(information, hermitian=True)
    effects = covariance @ (weights * (logs - levels)).sum(axis=1)
    spread = np.diag(covariance)
    variance = np.maximum(spread[:, None] + spread[None, :] - 2 * covariance, 0.0)
    observed, own = _scatter(of, pooled.process_variance)
    excess, freedom = pooled.scatter.moderate(observed, own)
    # a pair alone in its run borrows nothing, and may agree by chance
    least = np.where(variance > 0, 2 * LEAST_PROCESS_SD**2 / (own + 1), 0.0)
    error = pooled.factor * np.sqrt(np.maximum(variance * excess, least))
    parts = _parts(measured)
    is_joined = parts[:, None] == parts[None, :]
    has_error = is_joined & (freedom > 0) & (of.freedom > 0)
    difference = np.where(is_joined, effects[:, None] - effects[None, :], np.nan)
    return Contrasts(of.names, difference, np.where(has_error, error, np.nan), np.where(has_error, freedom, np.nan))


def own_errors(of: Contrasts) -> Array:
    """Return an error for each implementation, so that two of them squared add up to about a pair's squared error.

    These are quasi-variances (Firth and de Menezes 2004), by least squares of the pairs' relative deviations; NaN if
    no error is known.
    """
    rows, columns = np.triu_indices(len(of.names), 1)
    known = of.error[rows, columns] > 0
    rows, columns = rows[known], columns[known]
    scale = of.error[rows, columns] ** -2.0
    design = np.zeros((len(rows), len(of.names)))
    pairs = np.arange(len(rows))
    design[pairs, rows] = design[pairs, columns] = scale
    variances = np.linalg.lstsq(design, np.ones(len(rows)))[0]
    return np.sqrt(np.where((design > 0).any(axis=0), np.maximum(variances, LEAST_PROCESS_SD**2 / 100), np.nan))


def common(variances: Array, freedoms: Array) -> Common:
    """Return the variance that these share; variances without degrees of freedom are ignored."""
    tells = freedoms > 0
    location, freedom = _of_f(variances[tells], freedoms[tells])
    return Common(math.exp(location), freedom, float(freedoms[tells].sum()))


def _parts(measured: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return the index of each implementation's part of the design; chains of shared replicates join a part."""
    return np.asarray(connected_components(measured.astype(float) @ measured.T.astype(float))[1])


def _matrix(rounds_by_row: Sequence[Mapping[int, float]]) -> Array:
    """Return the logarithms of times as [implementation, round], NaN where a round is missing."""
    every = dict.fromkeys(number for of in rounds_by_row for number in of)
    return np.log([[of.get(number, math.nan) for number in every] for of in rounds_by_row])


def _middles(logs: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    """Return each row's midmean relative to the rounds' levels; and rounds, variance per round, degrees of freedom.

    The level of a round is the median of its rows relative to their midmeans. The variance per round is a midmean's
    variance (Yuen 1974, from the winsorised rounds) times the number of rounds.
    """
    median = np.nanmedian if np.isnan(logs).any() else np.median
    middles = median(logs, axis=1)
    for _ in range(STEPS):
        levels = median(logs - middles[:, None], axis=0)
        after, spread = _trimmed(logs - levels)
        change, middles = np.max(np.abs(after - middles)), after
        if change < 1e-9:
            break
    counts, units, freedoms = spread
    return middles, (counts, units * (len(logs) / max(1, len(logs) - 1)), freedoms)


def _trimmed(deviations: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    ordered = np.sort(deviations, axis=1)  # NaN comes last
    counts = (~np.isnan(ordered)).sum(axis=1)
    cut = (TRIMMED * counts).astype(int)
    place = np.arange(ordered.shape[1])
    inside = (place >= cut[:, None]) & (place < (counts - cut)[:, None])
    kept = inside.sum(axis=1)
    middles = np.where(inside, ordered, 0.0).sum(axis=1) / kept
    rows = np.arange(len(ordered))
    low, high = ordered[rows, cut], ordered[rows, counts - cut - 1]
    winsorised = np.clip(ordered, low[:, None], high[:, None])
    means = np.nanmean(winsorised, axis=1)
    squares = np.nansum((winsorised - means[:, None]) ** 2, axis=1)
    freedoms = (kept - 1).astype(np.float64)
    units = np.divide(squares * counts, kept * freedoms, out=np.zeros(len(rows)), where=freedoms > 0)
    return middles, (counts.astype(np.float64), units, freedoms)


def _scatter(of: Values, process_variance: float) -> tuple[Array, Array]:
    """Return each pair's variance over its replicates relative to the predicted one, and its degrees of freedom."""
    difference = of.logs[:, None] - of.logs[None, :]  # [row, column, replicate]
    predicted = 2 * process_variance + of.variances[:, None] + of.variances[None, :]
    weights = np.where(np.isnan(difference), 0.0, 1 / predicted)
    difference = np.nan_to_num(difference)
    total = weights.sum(axis=-1)
    means = np.divide((weights * difference).sum(axis=-1), total, out=np.zeros_like(total), where=total > 0)
    freedom = np.maximum((weights > 0).sum(axis=-1) - 1.0, 0.0)
    squares = (weights * (difference - means[..., None]) ** 2).sum(axis=-1)
    return np.divide(squares, freedom, out=np.zeros_like(total), where=freedom > 0), freedom


def _prediction(points: Sequence[Values], process_variance: float) -> tuple[float, float]:
    """Return the log of the pairs' common variance relative to the predicted one, and its degrees of freedom."""
    parts = [np.empty((2, 0))]
    for each in points:
        pairs = np.triu_indices(len(each.names), 1)
        parts.append(np.stack([part[pairs] for part in _scatter(each, process_variance)]))
    share, freedom = np.concatenate(parts, axis=1)
    tells = freedom > 0
    return _of_f(share[tells], freedom[tells], sum(max(0, len(each.names) - 1) for each in points))


def _of_f(variances: Array, freedoms: Array, independent: int = 0) -> tuple[float, float]:
    """Return the location, as a logarithm, and the degrees of freedom of the distribution of variances.

    They are estimated from the moments of the logarithms (Smyth 2004, section 6.2). With `independent`, the number of
    independent variances, their excess variance is shrunk to the usual one.
    """
    if variances.size < 2:
        return 0.0, 0.0
    half = freedoms / 2
    least = 1e-5 * float(np.median(variances))
    logs = np.log(np.maximum(variances, least or 1e-30)) - special.digamma(half) + np.log(half)
    chance = float(special.polygamma(1, half).mean())
    excess = float(logs.var(ddof=1)) - chance
    if independent:
        weight = independent / (float(special.polygamma(3, half).mean()) + 2 * chance**2)
        excess = (USUAL_EXCESS / EXCESS_SD**2 + excess * weight) / (1 / EXCESS_SD**2 + weight)
    mean = float(logs.mean())
    if excess <= 0:
        return mean, math.inf
    freedom = 2 * _inverse_trigamma(excess)
    return mean + float(special.digamma(freedom / 2)) - math.log(freedom / 2), freedom


def _inverse_trigamma(value: float) -> float:
    """Return the number whose trigamma function is this value."""
    low, high = min(1 / math.sqrt(value), 1 / value) / 2, max(1 / math.sqrt(value), 1 / value) + 1
    return float(optimize.brentq(lambda at: float(special.polygamma(1, at)) - value, low, high))
