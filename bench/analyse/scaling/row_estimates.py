"""Estimates from rows of the results: the logarithms of their latencies and speed-ups."""

import math
from collections.abc import Sequence

import numpy as np

from bench.analyse.scaling.series import Row
from bench.stats.estimates import Estimates
from bench.stats.replicates import Array, t_quantile


def log_latencies(rows: Sequence[Row]) -> Estimates:
    """Return the logarithms of the rows' latencies."""
    value, low, high = (_logarithms(rows, name) for name in ("latency_s", "latency_low_s", "latency_high_s"))
    processes = _numbers(rows, "processes")
    freedom = _freedom(processes)
    error = (high - low) / 2 / t_quantile(freedom)
    return Estimates(value, error, freedom)


def log_speedups(rows: Sequence[Row]) -> Estimates:
    """Return the logarithms of the rows' speed-ups, each a mean over processes; the baseline's has no error."""
    processes = _numbers(rows, "processes")
    error = _numbers(rows, "log_ratio_sd") / np.sqrt(processes)
    return Estimates(_logarithms(rows, "speedup"), error, _freedom(processes))


def _freedom(processes: Array) -> Array:
    return np.where(processes > 1, processes - 1, np.nan)


def _logarithms(rows: Sequence[Row], column: str) -> Array:
    return np.log(_numbers(rows, column))


def _numbers(rows: Sequence[Row], column: str) -> Array:
    return np.array([math.nan if row[column] is None else row[column] for row in rows], dtype=np.float64)
