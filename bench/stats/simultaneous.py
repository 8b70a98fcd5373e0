"""Intervals of several estimates that hold at once."""

import numpy as np
from scipy import special

from bench.stats.estimates import CONFIDENCE, Estimates, Interval


def simultaneous(of: Estimates) -> list[Interval]:
    """Return the t intervals of estimates; with CONFIDENCE all of them hold their true values (Bonferroni).

    Each of k has the level `1 - (1 - CONFIDENCE) / k`. An estimate without an error has no interval and isn't counted.
    """
    count = max(1, int(np.sum(~np.isnan(of.error))))
    half = special.stdtrit(of.freedom, 1 - (1 - CONFIDENCE) / 2 / count) * of.error
    return [Interval(*ends) for ends in np.stack([of.value, of.value - half, of.value + half], axis=-1).tolist()]
