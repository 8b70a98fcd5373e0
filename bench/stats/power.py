"""The power of a comparison: the smallest change that it detects, and its verdicts on rows without a change."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import optimize, stats

from bench.stats.limits import EQUIVALENCE_LEVEL, JUDGED, LEVEL, MARGIN, Limits
from bench.stats.replicates import Array
from bench.stats.significance import Moments, difference, holm

POWER = 0.8
"""A change is detectable if four of five comparisons find it: the usual power (Cohen 1988)."""

TABLE_ROWS = 50
"""The rows of the table in which the change stands: a sweep of some ten points; Holm's correction starts from them."""

TABLES = 2000
"""The tables that are drawn: a test that errs in 1 of 100 raises some 20 false alarms in them."""

MOST_ERRORS = 1e6
"""Any test finds a change of this many standard errors."""

MOST_NONCENTRAL = 10.0
"""A gain of this many times the standard errors that a test asks for is found for certain."""

MOST_CHANGE = 700.0
"""About the logarithm of the largest change that a float holds."""

SMOOTHING = 1.06
"""The width of the kernel over the standard deviation is this times n to the power of -1/5 (Silverman 1986)."""

GRID = 100
"""The quantiles that stand for the distribution of a standard deviation: twice as many move the result by 0.1 %."""


@dataclass(frozen=True)
class Redrawn:
    """The verdicts of compare on rows without a change, drawn by bootstrap from measured processes."""

    processes: int
    rows: int
    false_alarms: int
    equivalent: int
    tables: int
    tables_with_alarm: int


def pooled_sd(logs: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation within rows, pooled over all rows; NaN if no row has two values."""
    known = [values for values in logs if len(values) > 1]
    freedom = sum(len(values) - 1 for values in known)
    squares = sum(float(np.var(values)) * len(values) for values in known)
    return math.sqrt(squares / freedom) if freedom else math.nan


def detectable(sd: float, processes: int, rows: int = TABLE_ROWS, between_sd: float = 0.0) -> float:
    """Return the smallest change, as a share, that compare calls faster or slower with the probability POWER.

    Two runs of `processes` each, whose log ratios scatter by `sd`, are compared in a table in which one row changed.
    `between_sd` is what runs differ by beyond that.
    A noncentral t would be right for a pooled standard deviation; Welch's test has fewer degrees of freedom, and with
    3 processes it would miss half the changes of that size.
    """
    if sd == between_sd == 0:
        return MARGIN
    margin, error = math.log1p(MARGIN), math.sqrt(2 * (sd**2 / processes + between_sd**2))
    asked = _asked(margin / error, processes, LEVEL / rows)

    def excess(errors: float) -> float:
        return float(np.mean(stats.norm.sf(asked - errors))) - POWER

    change = margin + error * float(optimize.brentq(excess, 0.0, MOST_ERRORS))
    return math.expm1(change) if change < MOST_CHANGE else math.inf


def detectable_gain(sd: float, processes: int, rows: int) -> float:
    """Return the smallest gain, as a share, that a run shows with the probability POWER.

    Its log ratios scatter by `sd` between processes, and Holm's correction for `rows` tests begins with the level of
    the whole table over their number. Infinite for fewer than two processes.
    """
    if processes < 2:
        return math.inf
    asked = float(stats.t.isf(LEVEL / rows / 2, processes - 1))

    def excess(errors: float) -> float:
        return float(stats.nct.sf(asked, processes - 1, errors)) - POWER

    errors = float(optimize.brentq(excess, 0.0, MOST_NONCENTRAL * asked))
    return math.expm1(errors * sd / math.sqrt(processes))


def detectable_in(comparison: pd.DataFrame, processes: int) -> float:
    """Return the smallest change of a typical row, as a share, that compare detects with these processes on each side.

    The scatter of a typical row is the median over the judged rows; NaN if no scatter is known.
    """
    rows = comparison[comparison["verdict"].isin(JUDGED)]
    sides = [rows[f"{side}_log_ratio_sd"].to_numpy(dtype=np.float64, na_value=np.nan) for side in ("base", "new")]
    pooled = np.sqrt((sides[0] ** 2 + sides[1] ** 2) / 2)
    known = pooled[np.isfinite(pooled)]
    return detectable(float(np.median(known)), processes, len(rows)) if known.size and processes > 1 else math.nan


def redrawn(logs: Sequence[Sequence[float]], processes: int, seed: int, tables: int = TABLES) -> Redrawn:
    """Return the verdicts of compare on pairs of runs that are both drawn from the same rows.

    It is a smoothed bootstrap (Silverman & Young 1987): without smoothing, few processes often draw equal values, and
    the scatter is underestimated. Deviations are multiplied by sqrt(n / (n - 1)), because deviations of n values from
    their own mean are too small by that factor.
    """
    rng = np.random.default_rng(seed)
    base, new = (_drawn(logs, processes, tables, rng) for _ in range(2))
    change, limits = difference(base, new), Limits()
    alarms = np.array([holm(p_values) < limits.level for p_values in limits.p_changed(change)])
    equivalent = (limits.p_equivalent(change) < EQUIVALENCE_LEVEL) & ~alarms
    return Redrawn(
        processes=processes,
        rows=alarms.size,
        false_alarms=int(alarms.sum()),
        equivalent=int(equivalent.sum()),
        tables=tables,
        tables_with_alarm=int(alarms.any(axis=1).sum()),
    )


def _asked(margin_errors: float, processes: int, level: float) -> Array:
    """Return how many true standard errors beyond the margin an observed change must lie to be called a change.

    That depends on the two observed standard deviations: the values are those at a grid of equally likely quantiles.
    """
    variances = stats.chi2.ppf((np.arange(GRID) + 0.5) / GRID, processes - 1) / (processes - 1)
    base, new = (np.sqrt(side) for side in np.meshgrid(variances, variances))
    ones = np.ones_like(base)
    estimates = difference(Moments(0 * ones, base, processes * ones), Moments(0 * ones, new, processes * ones))
    errors = estimates.error / math.sqrt(2 / processes)
    near = stats.t.isf(level, estimates.freedom)
    far_share = stats.t.sf(near + 2 * margin_errors / errors, estimates.freedom) / level  # p_beyond counts both tails
    return np.asarray(stats.t.isf(level / (1 + far_share), estimates.freedom) * errors)


def _drawn(logs: Sequence[Sequence[float]], processes: int, tables: int, rng: np.random.Generator) -> Moments:
    """Return the means and standard deviations of rows drawn again, tables by rows."""
    drawn = np.stack([_values(own, (tables, processes), rng) for own in logs], axis=1)  # [tables, rows, processes]
    return Moments(drawn.mean(axis=-1), drawn.std(axis=-1, ddof=1), np.full(drawn.shape[:2], float(processes)))


def _values(own: Sequence[float], shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Return values drawn from a row's own, with its mean and its standard deviation."""
    count, mean, sd = len(own), float(np.mean(own)), float(np.std(own, ddof=1))
    deviations = rng.choice(np.asarray(own) - mean, shape) * math.sqrt(count / (count - 1))
    width = SMOOTHING * count**-0.2
    smoothed = deviations + width * sd * rng.standard_normal(shape)
    return np.asarray(mean + smoothed / math.sqrt(1 + width**2))
