"""Comparisons of two tables of results: changes of speed with intervals, and verdicts."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from bench.analyse.change import SHOWN, SIDES, WELL, Change
from bench.analyse.comparable import with_one_name
from bench.analyse.rows import Row, grouped, log_speedups, numbers, plain
from bench.analyse.summary import summarise
from bench.plan import verdicts
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import NotComparable, WrongRequest, unknown
from bench.plan.verdicts import MARGIN
from bench.stats.between_runs import BetweenRuns, of_changes
from bench.stats.estimates import Array, Estimates, Interval, combined, ratios
from bench.stats.levels import relative
from bench.stats.limits import EQUIVALENCE, LEVEL, Limits, Truths, holm, judged
from bench.store.record import Record
from bench.store.table import COLUMNS, NUMBER, TEXT, TRUTH, baseline_of

TYPES = {
    **{name: COLUMNS[name] for name in CASE_COLUMNS},
    **{f"{side}_{name}": COLUMNS[name] for side in SIDES for name in SHOWN},
    **dict.fromkeys(("change", "change_low", "change_high", "p", "p_holm"), NUMBER),
    "verdict": TEXT,
    "by_level": TRUTH,
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
    by_level: bool = True,
) -> pd.DataFrame:
    """Return one row per case of either table: the change of its speed, the interval and the verdict.

    `change` is NEW's speed over BASE's, above 1 if NEW is faster, relative to the common level of the rows of the point
    that both runs measured well; `by_level` says whether. Else, or if there are too few of these or the baseline moved
    against them, it is that of the speed-up over the baseline. `change_low` and `change_high` are its 95 % interval.
    Each side has the error of its own run.
    `p` tests whether the change exceeds the margin; `p_holm` is adjusted for the number of judged rows.
    Runs differ by more than their errors; the rows themselves tell by how much (`compared`).
    Rows are in the order of BASE, then of NEW. If a table names no baseline, the baseline's rows are open,
    because their ratios are 1 without scatter.
    Raises NotComparable if no case is shared or the baselines differ, WrongRequest for impossible limits or a repeated
    case.
    """
    changes, _ = compared(base, new, Limits(margin, equivalence, level), by_level=by_level)
    return pd.DataFrame([change.columns() for change in changes], dtype=object).astype(TYPES)


def compared(
    base: pd.DataFrame, new: pd.DataFrame, limits: Limits, *, by_level: bool = True
) -> tuple[list[Change], BetweenRuns]:
    """Return the changes of `compare`, and what two runs differ by beyond the errors of their rows.

    The machine's state differs from one run to another, and with it the ratios of unlike kernels.
    """
    pairs = _matched(base, new)
    baseline = _shared_baseline(base, new)
    within, is_by_level = _log_changes(pairs, baseline if by_level else None)
    between = of_changes(within, [case.implementation for case in pairs])
    logs = _sum((1, 1), within, _run_errors(between, len(pairs)))
    p = limits.p_changed(logs)
    p_holm = holm(p)
    by_statistics = judged(logs, p_holm < limits.level, limits)
    of_ratios = [Interval(*ends) for ends in np.stack(ratios(logs), axis=-1).tolist()]
    of_rows = [
        _by_status(*rows, is_baseline=case.implementation == baseline) or str(verdict)
        for (case, rows), verdict in zip(pairs.items(), by_statistics, strict=True)
    ]
    in_base, in_new = zip(*pairs.values(), strict=True)
    tests = p.tolist(), p_holm.tolist(), is_by_level.tolist()
    changes = [*map(Change, pairs, of_rows, in_base, in_new, of_ratios, *tests)]
    return changes, between


def is_compared(changes: Iterable[Change]) -> bool:
    """Return whether any change compares both runs: by a ratio, or by a status that changed."""
    by_status = (verdicts.NEWLY_FAILING, verdicts.FIXED)
    return any(
        change.verdict in by_status or (change.verdict in verdicts.JUDGED and not math.isnan(change.ratio.value))
        for change in changes
    )


def rebased(base: Sequence[Record], new: Sequence[Record], baseline: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables of two runs with ratios to this baseline; raises WrongRequest if one didn't measure it."""
    in_base, in_new = (
        dict.fromkeys(record.case.implementation for record in records if record.status == "ok")
        for records in (base, new)
    )
    names = [name for name in in_base if name in in_new]
    if baseline not in names:
        raise unknown("baseline", baseline, names or ["the shared implementations, of which there are none"])
    return summarise(base, baseline), summarise(new, baseline)


def _matched(base: pd.DataFrame, new: pd.DataFrame) -> Pairs:
    """Return the rows of every case of either table.

    Raises NotComparable if no case is shared, WrongRequest if a table holds a case twice.
    """
    sides = zip(("BASE", "NEW"), with_one_name(base, new), strict=True)
    in_base, in_new = (_by_case(side, table) for side, table in sides)
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


def _log_changes(pairs: Pairs, baseline: str | None) -> tuple[Estimates, Truths]:
    """Return the changes of the log speeds with the errors of both sides, and which are relative to a common level.

    The others, and all without a `baseline`, are those of speed-ups, as is the baseline's. What has no interval on a
    side can't be judged.
    """
    rows = [*zip(*pairs.values(), strict=True)]
    sides = [log_speedups(of) for of in rows]
    changes = _difference(sides, [side.error for side in sides])
    alone = _difference(sides, [numbers(of, "log_time_error") for of in rows])
    is_well = np.minimum(*(np.nan_to_num(numbers(of, "processes")) for of in rows)) >= WELL
    names, points = [case.implementation for case in pairs], [case.point for case in pairs]
    is_by_level = np.zeros(len(pairs), dtype=bool)
    for own in grouped(range(len(pairs)), lambda place: points[place]).values():
        of_baseline = [number for number, place in enumerate(own) if names[place] == baseline]
        level = relative(_at(alone, own), is_well[own], of_baseline[0]) if of_baseline else None
        if level is not None:
            others = [number for number in range(len(own)) if number not in of_baseline]
            at = np.array(own)[others]
            is_by_level[at] = True
            for name, part in vars(level).items():
                getattr(changes, name)[at] = part[others]
    return changes, is_by_level


def _at(of: Estimates, places: Sequence[int]) -> Estimates:
    return Estimates(of.value[places], of.error[places], of.freedom[places])


def _difference(sides: Sequence[Estimates], errors: Sequence[Array]) -> Estimates:
    """Return the second of two sides less the first, with these errors; one that is not above 0 is none."""
    pairs = zip(sides, errors, strict=True)
    return _sum((-1, 1), *(Estimates(of.value, np.where(error > 0, error, np.nan), of.freedom) for of, error in pairs))


def _sum(signs: tuple[int, int], one: Estimates, other: Estimates) -> Estimates:
    parts = (np.stack([getattr(of, name) for of in (one, other)], axis=-1) for name in ("value", "error", "freedom"))
    return combined(np.array(signs, dtype=np.float64), Estimates(*parts))


def _run_errors(by_rows: BetweenRuns, count: int) -> Estimates:
    """Return the error of each of `count` rows that comes from different runs; 0 if it isn't known."""
    pair = BetweenRuns(0.0, math.inf) if math.isnan(by_rows.sd) else by_rows
    return Estimates(*(np.full(count, each) for each in (0.0, pair.sd, pair.freedom)))
