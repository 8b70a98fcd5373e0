"""The comparison of two tables of results: the changes of the ratios, with intervals and verdicts."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from bench.analyse.comparison.matching import COLUMNS, is_ok, match, numbers, present, shared_baseline
from bench.analyse.comparison.verdicts import REGRESSIONS
from bench.stats.estimates import Estimates, ratios
from bench.stats.limits import (
    EQUIVALENCE,
    INCONCLUSIVE,
    JUDGED,
    LEVEL,
    MARGIN,
    Limits,
    Verdicts,
    first_that_holds,
    judged,
)
from bench.stats.occasions import Between
from bench.stats.replicates import Array
from bench.stats.sample_size import further_processes
from bench.stats.significance import SMALLEST_SCATTER, Moments, difference, holm

UNKNOWN = Between(0.0, math.inf)
"""What runs differ by if no self-check has measured it."""


def compare(
    base: pd.DataFrame,
    new: pd.DataFrame,
    *,
    margin: float = MARGIN,
    equivalence: float = EQUIVALENCE,
    level: float = LEVEL,
    between: Sequence[Mapping[int, Between]] = (),
) -> pd.DataFrame:
    """Return one row per case of either table: the change of its speed-up, the interval and the verdict.

    `change` is NEW's speed-up over BASE's, above 1 if NEW is faster relative to its own run's baseline;
    `change_low` and `change_high` are its 95 % interval over processes.
    `p` tests whether the change exceeds the margin; `p_holm` is adjusted for the number of judged rows.
    `between` has for each side what runs there differ by beyond their processes, by the number of threads.
    `further_processes` on each side would decide an inconclusive row, which would get the verdict `further_verdict`;
    both are missing if no reasonable number would.
    Rows are in the order of BASE, then of NEW. If a table names no baseline, the baseline's rows are inconclusive,
    because their ratios are 1 without scatter.
    Raises NotComparable if no case is shared or the baselines differ, WrongRequest for impossible limits or a repeated
    case.
    """
    limits = Limits(margin, equivalence, level)
    matched = match(base, new)
    settled = _by_status(matched, shared_baseline(base, new))
    samples = _moments(matched, "base"), _moments(matched, "new")
    apart = _apart(numbers(matched, "threads"), between)
    changes = difference(*samples, apart)
    p = limits.p_changed(changes)
    p_holm = holm(p)
    verdicts = np.where(settled == "", judged(changes, p_holm < level, limits), settled)
    return matched[list(COLUMNS)].assign(
        **_columns(changes, p, p_holm),
        **_effort(samples, limits, verdicts, apart, undecided=int(np.sum(p_holm >= level))),
        verdict=pd.array(verdicts, dtype="string"),
    )


def regressed(comparison: pd.DataFrame, verdicts: Collection[str] = REGRESSIONS) -> bool:
    """Return whether any row of a comparison has one of these verdicts."""
    return bool(comparison["verdict"].isin(list(verdicts)).any())


def is_compared(comparison: pd.DataFrame) -> bool:
    """Return whether any row compares both runs: by a ratio, or by a status that changed."""
    judged_rows = comparison["verdict"].isin(JUDGED) & comparison["change"].notna()
    return bool((judged_rows | comparison["verdict"].isin(["newly failing", "fixed"])).any())


def _by_status(matched: pd.DataFrame, baseline: str | None) -> Verdicts:
    """Return the verdicts that need no statistics, empty for the rows that are to be judged."""
    in_base, in_new = present(matched, "base"), present(matched, "new")
    base_ok, new_ok = is_ok(matched, "base"), is_ok(matched, "new")
    return first_that_holds(
        {
            "missing": in_base & ~in_new,
            "new": in_new & ~in_base,
            "newly failing": base_ok & ~new_ok,
            "fixed": new_ok & ~base_ok,
            "failing": ~base_ok & ~new_ok,
            "baseline": matched["implementation"].isin([baseline]).to_numpy(dtype=bool),
        },
        default="",
    )


def _moments(matched: pd.DataFrame, side: str) -> Moments:
    """Return the log speed-ups of a side; rows that can't be judged lack mean or scatter."""
    speedups, sd, count = (numbers(matched, f"{side}_{name}") for name in ("speedup", "log_ratio_sd", "processes"))
    return Moments(np.log(np.where(speedups > 0, speedups, np.nan)), np.where(sd < SMALLEST_SCATTER, 0.0, sd), count)


def _apart(threads: Array, between: Sequence[Mapping[int, Between]]) -> Estimates:
    """Return the error of each row that comes from different occasions; 0 where nothing is known of it."""
    known = [[side.get(int(count), UNKNOWN) for side in between] for count in threads]
    variance = np.array([sum(each.sd**2 for each in sides) for sides in known], dtype=np.float64)
    freedom = np.array([min((each.freedom for each in sides), default=math.inf) for sides in known], dtype=np.float64)
    return Estimates(np.zeros_like(variance), np.sqrt(variance), freedom)


def _columns(changes: Estimates, p: Array, p_holm: Array) -> dict[str, pd.api.extensions.ExtensionArray]:
    columns = zip(("change", "change_low", "change_high", "p", "p_holm"), (*ratios(changes), p, p_holm), strict=True)
    return {name: pd.array(values, dtype="Float64") for name, values in columns}


def _effort(
    samples: tuple[Moments, Moments], limits: Limits, verdicts: Verdicts, apart: Estimates, undecided: int
) -> dict[str, pd.api.extensions.ExtensionArray]:
    further, would_be = further_processes(*samples, limits, undecided, apart)
    known = (verdicts == INCONCLUSIVE) & (further > 0)
    return {
        "further_processes": pd.array(np.where(known, further, np.nan), dtype="Int64"),
        "further_verdict": pd.Series(would_be, dtype="string").where(known).array,
    }
