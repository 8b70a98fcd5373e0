"""Estimates from rows of the results: the logarithms of their latencies and speed-ups."""

import math
from collections.abc import Sequence

import numpy as np

from bench.analyse.scaling.series import Row
from bench.stats.contrasts import MOST_FREEDOM
from bench.stats.estimates import Estimates, of_ratios
from bench.stats.replicates import Array


def log_latencies(rows: Sequence[Row]) -> Estimates:
    """Return the logarithms of the rows' latencies.

    A table doesn't say of how many degrees of freedom their intervals are; they are moderated, so of many.
    """
    value, low, high = (_numbers(rows, name) for name in ("latency_s", "latency_low_s", "latency_high_s"))
    return of_ratios(value, low, high, np.where(np.isnan(low), np.nan, MOST_FREEDOM))


def log_speedups(rows: Sequence[Row]) -> Estimates:
    """Return the logarithms of the rows' speed-ups; the baseline's has no error."""
    return of_ratios(
        *(_numbers(rows, name) for name in ("speedup", "speedup_low", "speedup_high", "log_ratio_freedom"))
    )


def _numbers(rows: Sequence[Row], column: str) -> Array:
    return np.array([math.nan if row[column] is None else row[column] for row in rows], dtype=np.float64)
