"""What runs differ by beyond their processes: the machine's state changes from one occasion to the next."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Between:
    """The standard deviation of a log ratio between occasions, with its degrees of freedom; NaN if it isn't known."""

    sd: float
    freedom: float


def between(rows: Sequence[Sequence[Sequence[float]]]) -> Between:
    """Return what occasions differ by, from rows of occasions of log ratios, one of each process.

    It is the variance component of a nested design by the method of moments, pooled over rows, with Satterthwaite's
    degrees of freedom (Searle, Casella and McCulloch, Variance components, 1992). A negative component is 0.
    Rows with fewer than two occasions of at least two processes tell nothing.
    """
    squares, freedoms, sizes = np.zeros(2), np.zeros(2), []
    for occasions in rows:
        size = min(map(len, occasions), default=0)
        if len(occasions) < 2 or size < 2:
            continue
        values = np.array([list(occasion[:size]) for occasion in occasions])
        means = values.mean(axis=1)
        squares += size * np.sum((means - means.mean()) ** 2), np.sum((values - means[:, None]) ** 2)
        freedoms += len(occasions) - 1, len(occasions) * (size - 1)
        sizes.append(size)
    if not sizes:
        return Between(math.nan, math.nan)
    between_ms, within_ms = squares / freedoms
    excess = between_ms - within_ms
    if excess <= 0:
        return Between(0.0, float(freedoms[0]))
    freedom = excess**2 / (between_ms**2 / freedoms[0] + within_ms**2 / freedoms[1])
    return Between(math.sqrt(excess / float(np.mean(sizes))), float(freedom))
