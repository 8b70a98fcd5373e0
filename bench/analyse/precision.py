"""What a narrower precision brings, paired round by round."""

import dataclasses
import math
from collections.abc import Iterable

from bench.analyse.change import Change
from bench.analyse.rows import Row, grouped, shown_by
from bench.analyse.summary import rounds_of
from bench.plan.case import CONTROL, Case, Point
from bench.stats.contrasts import Contrasts, contrasts, prior, values
from bench.stats.estimates import PAIR, interval
from bench.store.journal import latest
from bench.store.record import Record

WIDEST = "float32"
"""The precision to which the others are compared."""


def changes(records: Iterable[Record], rows: Iterable[Row]) -> list[Change]:
    """Return the change to each narrower precision of each implementation that was measured in the same rounds.

    What has no time among the `rows` of the run in one of them, because it failed later, has none.
    """
    timed = {Case.from_columns(row): row for row in rows if row["latency_s"] is not None}
    found = []
    for point, of in across_precisions(records).items():
        for name in of.names:
            implementation, _, dtype = name.rpartition(" ")
            wide, case = Case(point, implementation), Case(dataclasses.replace(point, dtype=dtype), implementation)
            if dtype != WIDEST and in_precision(implementation, WIDEST) in of.names and {wide, case} <= timed.keys():
                ratio = interval(of.speedup(name, in_precision(implementation, WIDEST)), PAIR).exp()
                found.append(Change(case, shown_by(ratio), timed[wide], timed[case], ratio))
    return [change for change in found if not math.isnan(change.ratio.value)]


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
    pooled = prior([*values_of.values()])
    return {point: contrasts(own, pooled) for point, own in values_of.items()}


def in_precision(implementation: str, dtype: str) -> str:
    """Return the name of an implementation among those of several precisions."""
    return f"{implementation} {dtype}"
