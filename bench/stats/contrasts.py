"""The one error: by how much the implementations of a point differ, and how sure that is.

A point is a block design: its replicates are blocks, and in each an implementation has one value, the middle of its
rounds relative to the common level of the rounds. The scatter of a value has two parts: that of its rounds, and a part
between processes, which the whole run shows. The error of a pair of implementations is moderated (Smyth 2004, Linear
models and empirical Bayes methods): what the pair itself scatters by is shrunk to what these two parts predict, the
more the better they predict the pairs of the run. Four replicates give a pair alone 3 degrees of freedom; so it has 10
to 20.

The control is the baseline under a second name. If it differs from the baseline by more than these errors say, all of
them are too small, and are widened: by as much if that is no chance, else by less.
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
"""The points from which a run's prior is estimated, evenly spread over it: more don't make it better."""

MOST_FREEDOM = 1e9
"""What an infinite number of degrees of freedom is taken for, because infinity times 0 is no number."""

SMALLEST_TAIL = -700.0
"""The logarithm of the smallest probability that is distinguished from 0: that of 37 standard errors."""

USUAL_EXCESS, EXCESS_SD = 0.33, 0.25
"""Mean and standard deviation over runs of the excess variance of log variances of pairs: the prior for short runs. In
nine stored runs it was -0.5 to 1.0, the most exact ones 0.1, 0.3 and 0.5. A run of few replicates can hardly tell it:
over two of them the estimate itself scatters by 1.2."""

USUAL_POINTS, CHANCE = 20, 0.01
"""The mean square of a control's deviations counts as if so many more points had right errors, unless it is as large by
chance in less than CHANCE of runs. In 32 stored runs of 4 to 200 points it was 0.85 on average, and scattered by no
more than chance (variance 0.18, by chance 0.15), which is worth 60 points; in single ones it was up to 2.2."""

STEPS = 20
"""The most steps in which levels of rounds and middles of implementations are fitted to each other; most need two."""


@dataclass(frozen=True)
class Values:
    """The values of a point, an implementation in a row, a replicate in a column; NaN where one wasn't measured.

    `logs` are logarithms of times relative to the common level of the replicate's rounds. `variances` are those that
    the rounds of each predict.
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
    """A variance that many have in common: it counts as `freedom` degrees of freedom beside those of one of them.

    Together they are at most `most_freedom`, those of all.
    """

    variance: float
    freedom: float
    most_freedom: float

    def moderate(self, variances: Array, freedoms: Array) -> tuple[Array, Array]:
        """Return variances shrunk to the common one, and their degrees of freedom: none, and NaN, if nothing tells."""
        common = min(self.freedom, MOST_FREEDOM)
        freedom = common + freedoms
        squares = common * self.variance + np.where(freedoms > 0, freedoms * variances, 0.0)
        shrunk = np.divide(squares, freedom, out=np.full_like(squares, np.nan), where=freedom > 0)
        return shrunk, np.minimum(freedom, self.most_freedom)


@dataclass(frozen=True)
class Prior:
    """The variances that are pooled over a run, for the errors of each point.

    `process_variance` is the variance between processes. `scatter` is that of a pair as a share of the predicted one.
    All errors are multiplied by `factor`.
    """

    process_variance: float
    scatter: Common
    factor: float = 1.0


@dataclass(frozen=True)
class Contrasts:
    """The differences of log times, row minus column, with standard errors and degrees of freedom.

    A difference is NaN between implementations that no chain of shared replicates joins; an error and its degrees of
    freedom are NaN if nothing tells the scatter, as with one process.
    """

    names: tuple[str, ...]
    difference: Array
    error: Array
    freedom: Array

    def speedup(self, name: str, baseline: str) -> Estimates:
        """Return the log ratio of the baseline's time to that of an implementation."""
        at = self.names.index(baseline), self.names.index(name)
        return Estimates(self.difference[at], self.error[at], self.freedom[at])

    def without(self, name: str) -> "Contrasts":
        """Return the contrasts of the other implementations."""
        return self.only([each for each in self.names if each != name])

    def only(self, names: Sequence[str]) -> "Contrasts":
        """Return the contrasts of some of the implementations."""
        kept = [self.names.index(name) for name in names]
        pairs = np.ix_(kept, kept)
        return Contrasts(tuple(names), self.difference[pairs], self.error[pairs], self.freedom[pairs])


def values(times_s: Mapping[str, Mapping[Any, Mapping[int, float]]]) -> Values:
    """Return the values of a point, given seconds by implementation, replicate and round; replicates have an order."""
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
    # a row's own scatter over all its replicates; that of the others if it has too few rounds
    unit = np.divide((units * freedoms).sum(axis=1), freedom, out=np.full(len(names), np.nan), where=freedom > 0)
    unit = np.where(np.isnan(unit), np.median(unit[freedom > 0]) if freedom.any() else 0.0, unit)
    variances = np.divide(unit[:, None], counts, out=np.full(shape, np.nan), where=counts > 0)
    return Values(names, logs, variances)


def prior(points: Sequence[Values], control: tuple[str, str] | None = None) -> Prior:
    """Return the variances that are pooled over points; `control` has the names of the control and the baseline.

    The variance between processes is the one by which pairs scatter as predicted on the whole.
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
    """Return whether a control's deviations, as normal scores, may be so large if errors are right."""
    return not scores.size or float(special.chdtrc(scores.size, np.sum(scores**2))) >= CHANCE


def widening(scores: Array) -> float:
    """Return by how much errors are widened if a control deviates by these normal scores: 1.0 or more."""
    usual = USUAL_POINTS if is_chance(scores) else 0
    return max(1.0, math.sqrt((usual + np.sum(scores**2)) / (usual + scores.size)))


def normal_scores(of: Estimates) -> Array:
    """Return the deviations from 0 as normal scores: their mean square is 1 if all are 0 in truth and errors are right.

    What has no error is left out.
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
    # a pair that is alone in its run borrows nothing, and may agree by chance
    least = np.where(variance > 0, 2 * LEAST_PROCESS_SD**2 / (own + 1), 0.0)
    error = pooled.factor * np.sqrt(np.maximum(variance * excess, least))
    parts = _parts(measured)
    is_joined = parts[:, None] == parts[None, :]
    has_error = is_joined & (freedom > 0) & (of.freedom > 0)
    difference = np.where(is_joined, effects[:, None] - effects[None, :], np.nan)
    return Contrasts(of.names, difference, np.where(has_error, error, np.nan), np.where(has_error, freedom, np.nan))


def own_errors(of: Contrasts) -> Array:
    """Return an error for each implementation, so that the square of a pair's error is about the sum of two squares.

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
    """Return the variance that these have in common; variances without degrees of freedom are ignored."""
    tells = freedoms > 0
    location, freedom = _of_f(variances[tells], freedoms[tells])
    return Common(math.exp(location), freedom, float(freedoms[tells].sum()))


def _parts(measured: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return the part of the design that each implementation is in: a chain of replicates joins those of a part."""
    return np.asarray(connected_components(measured.astype(float) @ measured.T.astype(float))[1])


def _matrix(rounds_by_row: Sequence[Mapping[int, float]]) -> Array:
    """Return the logarithms of times, a row for each implementation, a column for each round, NaN where it lacks."""
    every = dict.fromkeys(number for of in rounds_by_row for number in of)
    return np.log([[of.get(number, math.nan) for number in every] for of in rounds_by_row])


def _middles(logs: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    """Return the midmean of each row relative to the rounds' levels; and rounds, variance of one, degrees of freedom.

    The level of a round is the median of its rows relative to their middles. The variance of a midmean is that of
    Yuen (1974), from the winsorised rounds, times the number of rounds.
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
    """Return the variance of each pair over its replicates as a share of the predicted one, and its freedom."""
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
    """Return the logarithm of the pairs' common variance as a share of the predicted one, and what it counts as."""
    parts = [np.empty((2, 0))]
    for each in points:
        pairs = np.triu_indices(len(each.names), 1)
        parts.append(np.stack([part[pairs] for part in _scatter(each, process_variance)]))
    share, freedom = np.concatenate(parts, axis=1)
    tells = freedom > 0
    return _of_f(share[tells], freedom[tells], sum(max(0, len(each.names) - 1) for each in points))


def _of_f(variances: Array, freedoms: Array, independent: int = 0) -> tuple[float, float]:
    """Return the location, as a logarithm, and the degrees of freedom of the distribution that variances come from.

    They are estimated by the moments of the logarithms (Smyth 2004, section 6.2). If so many of the variances are
    `independent`, the excess of their scatter is shrunk to the usual one.
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
