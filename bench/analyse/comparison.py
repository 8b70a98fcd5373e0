"""Comparisons of two tables of results: changes of speed with intervals, and verdicts."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from bench.analyse.change import SHOWN, SIDES, Change
from bench.analyse.rows import Row, grouped, log_speedups, plain
from bench.plan import verdicts
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import NotComparable, WrongRequest
from bench.plan.verdicts import MARGIN
from bench.stats.estimates import Estimates, Interval, combined, ratios
from bench.stats.limits import EQUIVALENCE, LEVEL, Limits, holm, judged
from bench.store.table import COLUMNS, NUMBER, TEXT, baseline_of

TYPES = {
    **{name: COLUMNS[name] for name in CASE_COLUMNS},
    **{f"{side}_{name}": COLUMNS[name] for side in SIDES for name in SHOWN},
    **dict.fromkeys(("change", "change_low", "change_high", "p", "p_holm"), NUMBER),
    "verdict": TEXT,
}
"""The pandas type of each column of a comparison."""

MOST_NAMED = 4
"""The most values of a column that an error names, so that it stays one line."""

Pairs = Mapping[Case, tuple[Row, Row]]
"""The rows of each case on both sides, empty if a side has none."""


def compare(
    base: pd.DataFrame,
    new: pd.DataFrame,
    *,
    margin: float = MARGIN,
    equivalence: float = EQUIVALENCE,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Return one row per case of either table: the change of its speed, the interval and the verdict.

    `change` is NEW's speed-up over BASE's, above 1 if NEW is faster; `change_low` and `change_high` are its 95 %
    interval. Each side has the error of its own run.
    `p` tests whether the change exceeds the margin; `p_holm` is adjusted for the number of judged rows.
    Rows are in the order of BASE, then of NEW. If a table names no baseline, the baseline's rows are open,
    because their ratios are 1 without scatter.
    Raises NotComparable if no case is shared or the baselines differ, WrongRequest for impossible limits or a repeated
    case.
    """
    changes = compared(base, new, Limits(margin, equivalence, level))
    return pd.DataFrame([change.columns() for change in changes], dtype=object).astype(TYPES)


def compared(base: pd.DataFrame, new: pd.DataFrame, limits: Limits) -> list[Change]:
    """Return the changes of `compare`."""
    pairs = _matched(base, new)
    baseline, logs = _shared_baseline(base, new), _log_changes(pairs)
    p = limits.p_changed(logs)
    p_holm = holm(p)
    by_statistics = judged(logs, p_holm < limits.level, limits)
    of_ratios = [Interval(*ends) for ends in np.stack(ratios(logs), axis=-1).tolist()]
    of_rows = [
        _by_status(*rows, is_baseline=case.implementation == baseline) or str(verdict)
        for (case, rows), verdict in zip(pairs.items(), by_statistics, strict=True)
    ]
    in_base, in_new = zip(*pairs.values(), strict=True)
    return [*map(Change, pairs, of_rows, in_base, in_new, of_ratios, p.tolist(), p_holm.tolist())]


def is_compared(changes: Iterable[Change]) -> bool:
    """Return whether any change compares both runs: by a ratio, or by a status that changed."""
    by_status = (verdicts.NEWLY_FAILING, verdicts.FIXED)
    return any(
        change.verdict in by_status or (change.verdict in verdicts.JUDGED and not math.isnan(change.ratio.value))
        for change in changes
    )


def _matched(base: pd.DataFrame, new: pd.DataFrame) -> Pairs:
    """Return the rows of every case of either table.

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
            raise WrongRequest(f"{side} holds the case {case.name} more than once; expected one row per case")
    return {case: row for case, (row,) in rows.items()}


def _disjoint(base: Sequence[Case], new: Sequence[Case]) -> str:
    """Return the columns in which the sides share no value, with the values."""
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
    """Return the implementation that the speed-ups of both tables refer to, None if a table doesn't say it.

    Raises NotComparable if they refer to two.
    """
    in_base, in_new = baseline_of(base), baseline_of(new)
    if in_base and in_new and in_base != in_new:
        raise NotComparable(f"speed-ups refer to {in_base} in BASE and to {in_new} in NEW; expected one baseline")
    return in_base if in_new else None


def _by_status(base: Row, new: Row, *, is_baseline: bool) -> str:
    """Return the verdict that needs no statistics, empty for a row that is to be judged."""
    if not (base and new):
        return verdicts.MISSING if base else verdicts.NEW
    base_ok, new_ok = (row["status"] == "ok" for row in (base, new))
    if base_ok and new_ok:
        return verdicts.BASELINE if is_baseline else ""
    return verdicts.NEWLY_FAILING if base_ok else verdicts.FIXED if new_ok else verdicts.NOT_MEASURED


def _log_changes(pairs: Pairs) -> Estimates:
    """Return the changes of the log speed-ups; what has no interval on a side can't be judged."""
    sides = [log_speedups(of) for of in zip(*pairs.values(), strict=True)]
    parts = (np.stack([getattr(of, name) for of in sides], axis=-1) for name in ("value", "error", "freedom"))
    value, error, freedom = parts
    return combined(np.array([-1.0, 1.0]), Estimates(value, np.where(error > 0, error, np.nan), freedom))
