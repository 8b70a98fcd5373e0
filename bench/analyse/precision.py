"""The same case in several precisions: how much faster, paired round by round, and with how much error."""

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.analyse.summary import log_ratios
from bench.plan.case import CONTROL, Point
from bench.stats.replicates import Estimate, ratio
from bench.store.record import Record, latest

WIDEST = "float32"
"""The precision to which the others are compared."""


@dataclass(frozen=True)
class Change:
    """A change of precision: the time in `WIDEST` over the time in `dtype`; both have the same replicates."""

    point: Point
    implementation: str
    dtype: str
    speedup: Estimate


def changes(records: Iterable[Record]) -> list[Change]:
    """Return the change to each narrower precision, of each implementation that was measured in the same rounds.

    `point` is that in WIDEST. Records of replicates that lack one of both precisions don't count.
    """
    cases: dict[tuple[Point, str], dict[str, list[Record]]] = {}
    for record in latest(records):
        if record.case.implementation != CONTROL and record.status == "ok":
            point = dataclasses.replace(record.case.point, dtype=WIDEST)
            by_dtype = cases.setdefault((point, record.case.implementation), {})
            by_dtype.setdefault(record.case.point.dtype, []).append(record)
    return [
        Change(point, name, dtype, ratio(logs))
        for (point, name), by_dtype in cases.items()
        for dtype, narrow in by_dtype.items()
        if dtype != WIDEST and (logs := _logs(narrow, by_dtype.get(WIDEST, [])))
    ]


def _logs(narrow: Sequence[Record], wide: Sequence[Record]) -> list[float]:
    """Return the log ratio of each replicate that measured both: it has the same number and the same seed."""
    together = {(record.process, record.seed) for record in wide if record.seed is not None}
    return log_ratios([record for record in narrow if (record.process, record.seed) in together], wide)
