"""The control of a run: the baseline, measured a second time under another name, whose ratio to it is 1 in truth."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.plan.case import CONTROL, Point
from bench.stats.estimates import Estimates, Interval
from bench.stats.limits import LEVEL
from bench.stats.replicates import Array
from bench.stats.significance import SMALLEST_SCATTER, p_beyond, p_of_all
from bench.store.table import baseline_of, cases


@dataclass(frozen=True)
class Deviation:
    """A point at which the 95 % interval of the control's speed-up excludes 1."""

    point: Point
    speedup: Interval


@dataclass(frozen=True)
class Control:
    """The control of a run: the points at which it deviates, the clearest first, of those that have an interval.

    `p` tests whether all of its ratios are 1. Of 12 points half of all runs have one that deviates by chance, so a run
    is unproven only if chance makes such a `p` in one run of a hundred.
    """

    baseline: str
    deviations: tuple[Deviation, ...]
    points: int
    p: float

    @property
    def is_unproven(self) -> bool:
        """Whether the run measures differences where there are none."""
        return self.p < LEVEL


def control(table: pd.DataFrame) -> Control:
    """Return what the rows of the control in a table of results say; without such rows nothing deviates."""
    rows = table[(table["implementation"] == CONTROL) & (table["status"] == "ok")]
    ratios, lows, highs, sds, counts = (
        rows[name].to_numpy(dtype=np.float64, na_value=np.nan)
        for name in ("speedup", "speedup_low", "speedup_high", "log_ratio_sd", "processes")
    )
    p_values = _p_values(ratios, sds, counts)
    order = [index for index in np.argsort(p_values).tolist() if lows[index] > 1 or highs[index] < 1]
    points = [case.point for case in cases(rows)]
    return Control(
        baseline=baseline_of(table) or "the baseline",
        deviations=tuple(Deviation(points[at], Interval(ratios[at], lows[at], highs[at])) for at in order),
        points=int(np.sum(~np.isnan(p_values))),
        p=p_of_all(p_values),
    )


def _p_values(ratios: Array, sds: Array, counts: Array) -> Array:
    """Return the p-value of "the ratio is 1" for each row, NaN without a scatter."""
    errors = np.where(sds > SMALLEST_SCATTER, sds, math.nan) / np.sqrt(counts)
    return p_beyond(Estimates(np.log(ratios), errors, counts - 1), 0.0)
