"""The check of a run's errors by its control."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.plan.case import CONTROL, Point
from bench.stats.contrasts import is_chance, normal_scores, widening
from bench.stats.estimates import UNKNOWN, Estimates, Interval
from bench.store.table import baseline_of, cases


@dataclass(frozen=True)
class Control:
    """The control of a run: the point where it differs most from the baseline, and its speed-up there.

    `excess` is the root mean square of its deviations relative to the errors before widening: about 1 if these are
    right, NaN if unknown. All intervals and bounds of the run are `widened` by a factor. `is_notable` says that
    identical code differs by more than rounds, processes and chance explain.
    """

    baseline: str
    points: int = 0
    point: Point | None = None
    speedup: Interval = UNKNOWN
    excess: float = math.nan
    widened: float = 1.0
    is_notable: bool = False


def control(table: pd.DataFrame) -> Control:
    """Return the control of a run from its rows in a table of results."""
    baseline = baseline_of(table) or "the baseline"
    rows = table[(table["implementation"] == CONTROL) & (table["status"] == "ok") & table["speedup"].notna()]
    if rows.empty:
        return Control(baseline)
    columns = ["speedup", "speedup_low", "speedup_high", "log_ratio_error", "log_ratio_freedom"]
    cells = rows[columns].to_numpy(dtype=np.float64, na_value=np.nan)
    logs = np.log(cells[:, 0])
    furthest = int(np.argmax(np.abs(logs)))
    scores = normal_scores(Estimates(logs, cells[:, 3], cells[:, 4]))
    excess = math.sqrt(np.mean(scores**2)) if scores.size else math.nan
    return Control(
        baseline,
        len(rows),
        cases(rows)[furthest].point,
        Interval(*cells[furthest, :3].tolist()),
        excess,
        widening(scores),
        not is_chance(scores),
    )
