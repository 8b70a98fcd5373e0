"""What the control of a run says about its errors."""

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
    """The control of a run: at which of its points it differs most from the baseline, and by which speed-up.

    `excess` is the root mean square of its deviations over what the errors say, before the control widens them: about 1
    if they are right; NaN if nothing tells. All intervals and bounds of the run are `widened` by a factor. It is
    notable if identical code differs by more than rounds and processes explain, which is hardly chance.
    """

    baseline: str
    points: int = 0
    point: Point | None = None
    speedup: Interval = UNKNOWN
    excess: float = math.nan
    widened: float = 1.0
    is_notable: bool = False


def control(table: pd.DataFrame) -> Control:
    """Return what the rows of the control in a table of results say."""
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
