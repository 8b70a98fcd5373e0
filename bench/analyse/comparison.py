"""Comparisons of two tables of results: the change of each case, with a verdict."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from bench.analyse.change import Change, judge
from bench.analyse.flags import is_biased
from bench.analyse.rows import Row, grouped, numbers, plain
from bench.analyse.standing import DECIDED, FASTEST, NAMED
from bench.plan import verdicts
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import NotComparable, WrongRequest
from bench.plan.verdicts import EQUIVALENCE, MARGIN, OPEN
from bench.stats.best import GOOD
from bench.stats.estimates import Estimates, differences, of_ratios, simultaneous
from bench.store.table import COLUMNS, NUMBER, TEXT, baseline_of

RATIO = ("change", "change_low", "change_high")

OF_SIDES = ("status", "detail", "speedup", "speedup_low", "speedup_high", "processes", "latency_s", "standing")
"""The columns that a comparison has for each side."""

TYPES = {
    "verdict": TEXT,
    **{name: COLUMNS[name] for name in CASE_COLUMNS},
    **dict.fromkeys(RATIO, NUMBER),
    **{f"{side}_{name}": COLUMNS[name] for name in OF_SIDES for side in ("base", "new")},
}
"""The columns of a comparison with their pandas types."""

USUAL_FREEDOM = 10.0
"""The degrees of freedom assumed for intervals in a results file, which doesn't hold them; most have 10 to 20."""

NEARLY_ALL, MOST_CHANGE = 0.9, 1.0
"""The share of rows that a bound on changes covers, because a few are always noisy, and the largest useful bound."""

MOST_NAMED = 4
"""The most values of a column that an error names, so that it fits on one line."""

Pairs = Mapping[Case, tuple[Row, Row]]
"""The rows of each case on both sides, empty if a side has none."""


def compare(base: pd.DataFrame, new: pd.DataFrame, *, margin: float = MARGIN) -> pd.DataFrame:
    """Return one row per case of either table: the change of its speed, the interval and the verdict, worst first.

    `change` is NEW's speed-up over BASE's, above 1 if NEW is faster. `change_low` and `change_high` are the ends of its
    interval; all intervals hold together with 99 % confidence.
    If a table names no baseline, the baseline's rows are open, because their ratios are 1 without scatter.
    Raises NotComparable if no case is shared or the baselines differ, WrongRequest for an impossible margin or a
    repeated case.
    """
    return frame(compared(base, new, margin=margin))


def compared(base: pd.DataFrame, new: pd.DataFrame, *, margin: float = MARGIN) -> list[Change]:
    """Return the changes of `compare`, the worst verdict first, and within a verdict the slowest first."""
    if not 0 <= margin < math.inf:
        raise WrongRequest(f"margin = {margin} must be a share of at least 0, such as {MARGIN} for 1%")
    pairs = _matched(base, new)
    baseline, logs = _shared_baseline(base, new), simultaneous(_log_changes(pairs))
    changes = []
    for (case, (old, young)), log in zip(pairs.items(), logs, strict=True):
        by_status = _by_status(old, young, is_baseline=case.implementation == baseline)
        if by_status:
            changes.append(Change(case, by_status, old, young, log.exp()))
        else:
            verdict = judge(log.exp(), margin, max(margin, EQUIVALENCE))
            changes.append(Change(case, OPEN if is_biased(old) or is_biased(young) else verdict, old, young, log.exp()))
    rank = [*verdicts.VERDICTS].index
    return sorted(changes, key=lambda of: (rank(of.verdict), round(_number(of.ratio.value) or 1.0, 3)))


def frame(changes: Iterable[Change]) -> pd.DataFrame:
    """Return changes as a table with a row for each; numbers that don't apply or are infinite are missing."""
    rows = [
        {
            "verdict": of.verdict,
            **of.case.columns(),
            **dict(zip(RATIO, map(_number, vars(of.ratio).values()), strict=True)),
            **{f"base_{name}": of.base.get(name) for name in OF_SIDES},
            **{f"new_{name}": of.new.get(name) for name in OF_SIDES},
        }
        for of in changes
    ]
    return pd.DataFrame(rows, columns=[*TYPES], dtype=object).astype(TYPES)


def is_compared(changes: Iterable[Change]) -> bool:
    """Return whether any change compares both runs, by a ratio or by a changed status."""
    by_status = (verdicts.NEWLY_FAILING, verdicts.FIXED)
    has_ratio = (
        of.verdict in by_status or (of.verdict in verdicts.JUDGED and _number(of.ratio.value)) for of in changes
    )
    return any(has_ratio)


def no_longer_to_use(changes: Iterable[Change]) -> tuple[list[Change], int]:
    """Return BASE's recommendations that are slower than another one or not ok in NEW, and the number of BASE's."""
    chosen = [of for of in changes if of.new and _is_recommended(of.base)]
    lost = [of for of in chosen if of.new["status"] != "ok" or (of.new["slowdown_low"] or 1.0) > GOOD]
    return lost, len(chosen)


def _is_recommended(row: Row) -> bool:
    return row.get("standing") == FASTEST or (
        row.get("standing") == NAMED and (row["slowdown_high"] or math.inf) <= DECIDED
    )


def excluded(changes: Iterable[Change]) -> tuple[float, int]:
    """Return a bound in whole percent that nearly all of these judged changes are within, and how many are.

    A bound above MOST_CHANGE is returned as infinite.
    """
    ends = sorted(max(of.ratio.high, 1 / of.ratio.low if of.ratio.low else math.inf) - 1 for of in changes)
    bound = ends[math.ceil(NEARLY_ALL * len(ends)) - 1]
    if bound > MOST_CHANGE:
        return math.inf, 0
    bound = math.ceil(100 * bound) / 100
    return bound, sum(end <= bound for end in ends)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _matched(base: pd.DataFrame, new: pd.DataFrame) -> Pairs:
    """Return the pair of rows of every case in either table.

    Raises NotComparable if no case is shared, WrongRequest if a table holds a case twice.
    """
    in_base, in_new = _by_case("BASE", base), _by_case("NEW", new)
    if not in_base.keys() & in_new.keys():
        raise NotComparable(f"BASE and NEW share no case{_disjoint([*in_base], [*in_new])}")
    return {case: (in_base.get(case, {}), in_new.get(case, {})) for case in dict.fromkeys([*in_base, *in_new])}


def _by_case(side: str, table: pd.DataFrame) -> dict[Case, Row]:
    rows = grouped(plain(table), Case.from_columns)
    for case, own in rows.items():
        if own[1:]:
            raise WrongRequest(f"{side} has the case {case.name} more than once; expected one row per case")
    return {case: row for case, (row,) in rows.items()}


def _disjoint(base: Sequence[Case], new: Sequence[Case]) -> str:
    """Return the columns in which the sides have no value in common, with the values."""
    sides = [[case.columns() for case in cases] for cases in (base, new)]
    values = {name: [dict.fromkeys(row[name] for row in rows) for rows in sides] for name in CASE_COLUMNS}
    parts = [
        f"{name} is {_listed(in_base)} in BASE and {_listed(in_new)} in NEW"
        for name, (in_base, in_new) in values.items()
        if not in_base.keys() & in_new.keys()
    ]
    return f": {'; '.join(parts)}" if parts else ""


def _listed(values: Iterable[object]) -> str:
    texts = ["empty" if value is None else str(value) for value in values]
    return ", ".join(texts[:MOST_NAMED]) + (" …" if len(texts) > MOST_NAMED else "")


def _shared_baseline(base: pd.DataFrame, new: pd.DataFrame) -> str | None:
    """Return the baseline of both tables, None if a table doesn't name it.

    Raises NotComparable for two different baselines.
    """
    in_base, in_new = baseline_of(base), baseline_of(new)
    if in_base and in_new and in_base != in_new:
        raise NotComparable(f"BASE and NEW must have one baseline, but have {in_base} in BASE and {in_new} in NEW")
    return in_base if in_new else None


def _by_status(base: Row, new: Row, *, is_baseline: bool) -> str:
    """Return the verdict that needs no statistics; empty for a row that needs a judgement."""
    if not (base and new):
        return verdicts.MISSING if base else verdicts.NEW
    base_ok, new_ok = (row["status"] == "ok" for row in (base, new))
    if base_ok and new_ok:
        return verdicts.BASELINE if is_baseline else ""
    return verdicts.NEWLY_FAILING if base_ok else verdicts.FIXED if new_ok else verdicts.NOT_MEASURED


def _log_changes(pairs: Pairs) -> Estimates:
    """Return the changes of the log speed-ups; without an interval on both sides they have no error."""
    before, after = (_log_speedups(rows) for rows in zip(*pairs.values(), strict=True))
    return differences(after, before)


def _log_speedups(rows: Sequence[Row]) -> Estimates:
    """Return the logarithms of the rows' speed-ups; the baseline's own ratio, always 1, has no error."""
    value, low, high = (numbers(rows, name) for name in ("speedup", "speedup_low", "speedup_high"))
    freedom = numbers(rows, "log_ratio_freedom")
    logs = of_ratios(value, low, high, np.where(np.isnan(freedom), USUAL_FREEDOM, freedom))
    return replace(logs, error=np.where(logs.error > 0, logs.error, np.nan))
