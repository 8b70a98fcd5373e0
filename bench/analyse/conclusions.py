"""What a whole run says: which core to use, the gain of a narrower precision, and whether errors are right."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.analyse.series import grouped
from bench.analyse.standing import cost, places
from bench.analyse.summary import Summary, rounds_of
from bench.plan.case import CONTROL, Point
from bench.stats.contrasts import Contrasts, contrasts, normal_scores, prior, values
from bench.stats.estimates import PAIR, UNKNOWN, Estimates, Interval, interval
from bench.store.journal import latest
from bench.store.record import Record
from bench.store.table import baseline_of, cases
from impls.catalogue import IMPLEMENTATIONS, parse, shapes_itself
from impls.table import SDPA

WIDEST = "float32"
"""The precision to which the others are compared."""

CORES = "attend."
"""The package of the implementations that replace the core alone."""

NOTABLE = 1.2
"""If errors are widened by more than this, a person should know: of runs with right errors and 12 points, one in eight
is."""


@dataclass(frozen=True)
class Change:
    """A change of precision: the time in `WIDEST` over the time in `dtype`; both have the same replicates."""

    point: Point
    implementation: str
    dtype: str
    speedup: Interval


def changes(records: Iterable[Record]) -> list[Change]:
    """Return the change to each narrower precision, of each implementation that was measured in the same rounds.

    `point` is that in WIDEST.
    """
    all_changes = []
    for point, of in across_precisions(records).items():
        for name in of.names:
            implementation, _, dtype = name.rpartition(" ")
            wide = in_precision(implementation, WIDEST)
            if dtype != WIDEST and wide in of.names:
                all_changes.append(Change(point, implementation, dtype, interval(of.speedup(name, wide), PAIR).exp()))
    return [change for change in all_changes if not math.isnan(change.speedup.value)]


def across_precisions(records: Iterable[Record]) -> dict[Point, Contrasts]:
    """Return the contrasts of what was measured in the same rounds in several precisions, by its point in WIDEST.

    They have the names of `in_precision`.
    """
    usable = (each for each in latest(records) if each.status == "ok" and each.seed is not None)
    by_case = grouped((each for each in usable if each.case.implementation != CONTROL), lambda record: record.case)
    cases_of = grouped(by_case, lambda case: dataclasses.replace(case.point, dtype=WIDEST))
    values_of = {
        point: values({in_precision(case.implementation, case.point.dtype): rounds_of(by_case[case]) for case in own})
        for point, own in cases_of.items()
        if len({case.point.dtype for case in own}) > 1
    }
    lent = prior([*values_of.values()])
    return {point: contrasts(own, lent) for point, own in values_of.items()}


def in_precision(implementation: str, dtype: str) -> str:
    """Return the name of an implementation among those of several precisions."""
    return f"{implementation} {dtype}"


@dataclass(frozen=True)
class CoreChoice:
    """The core to use at a point.

    It takes at most `slowdown_high` times as long as the fastest core there, NaN if nothing tells. `speedup` is how
    many times as fast as sdpa it is. Nothing but sdpa is chosen unless it is shown to be faster than sdpa.
    """

    point: Point
    implementation: str
    slowdown_high: float
    speedup: Interval


def choices(summary: Summary) -> list[CoreChoice]:
    """Return the choice at each point at which sdpa was measured, other than points of whole models."""
    chosen = []
    for point in summary:
        of = summary.contrasts(point)
        if shapes_itself(point.layer) or SDPA not in of.names:
            continue
        gains = {name: interval(of.speedup(name, SDPA), PAIR).exp() for name in of.names if is_core(name)}
        compared = of.only([name for name, gain in gains.items() if name == SDPA or gain.is_known])
        places_by_name = places(compared, {row["implementation"]: cost(row) for row in summary.rows(point)}, SDPA)
        first = next(iter(places_by_name))
        name = first if gains[first].low > 1 else SDPA
        slowdown = places_by_name[name].slowdown
        speedup = gains[name] if name != SDPA else Interval(1.0, 1.0, 1.0)
        chosen.append(CoreChoice(point, name, slowdown.high if slowdown else math.nan, speedup))
    return chosen


def is_core(name: str) -> bool:
    """Return whether an implementation replaces the core alone and needs no compilation, or is a user's own."""
    entry = IMPLEMENTATIONS.get(parse(name).base)
    return ":" in name if entry is None else entry.adapter.startswith(CORES) and not entry.compiles


def gain(of: Sequence[CoreChoice]) -> float:
    """Return the most that a choice is shown to be faster than sdpa, as a share; 0 if none is."""
    return max((choice.speedup.low for choice in of), default=1.0) - 1


@dataclass(frozen=True)
class Control:
    """The control of a run: at which of its points it differs most from the baseline, and by which speed-up.

    `excess` is the root mean square of its deviations over what the errors say, before the control widens them: about 1
    if they are right; NaN if nothing tells. All intervals and bounds of the run are that many times as wide, if it is
    above 1.
    """

    baseline: str
    points: int = 0
    point: Point | None = None
    speedup: Interval = UNKNOWN
    excess: float = math.nan

    @property
    def is_notable(self) -> bool:
        """Whether identical code differs by more than rounds and processes explain."""
        return self.excess > NOTABLE


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
    return Control(baseline, len(rows), cases(rows)[furthest].point, Interval(*cells[furthest, :3].tolist()), excess)
