"""The same case in several precisions: how much faster, paired round by round, and with how much error."""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass

from bench.analyse.summary import rounds_of
from bench.plan.case import CONTROL, Case, Point
from bench.stats.contrasts import contrasts, prior, values
from bench.stats.estimates import Interval, intervals, joined
from bench.store.record import Record, latest

WIDEST = "float32"
"""The precision to which the others are compared."""


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
    cases: dict[Point, dict[Case, list[Record]]] = {}
    for record in latest(records):
        if record.case.implementation != CONTROL and record.status == "ok" and record.seed is not None:
            point = dataclasses.replace(record.case.point, dtype=WIDEST)
            cases.setdefault(point, {}).setdefault(record.case, []).append(record)
    by_point = {
        point: values({_name(case): rounds_of(own) for case, own in of.items()})
        for point, of in cases.items()
        if len({case.point.dtype for case in of}) > 1
    }
    lent = prior([*by_point.values()])
    found = []
    for point, of_point in by_point.items():
        of = contrasts(of_point, lent)
        for case in cases[point]:
            wide = Case(point, case.implementation)
            if case.point.dtype != WIDEST and wide in cases[point]:
                (speedup,) = intervals(joined([of.speedup(_name(case), _name(wide))]))
                found.append(Change(point, case.implementation, case.point.dtype, speedup.exp()))
    return [change for change in found if not math.isnan(change.speedup.value)]


def _name(case: Case) -> str:
    return f"{case.implementation} {case.point.dtype}"
