"""The ratios of a run anew, to another implementation than its baseline."""

from collections.abc import Sequence

import pandas as pd

from bench.analyse.summary import summarise
from bench.plan.case import Point
from bench.store.record import Record

Visit = tuple[Point, int]
"""A point in one process."""


def anchored(records: Sequence[Record], anchor: str) -> pd.DataFrame:
    """Return the table of results with ratios to the anchor, each paired within the rounds of one process.

    A case counts only the processes that measured the anchor beside it, because only these say anything of the ratio:
    an implementation that was added to a run later met the run's baseline, and not necessarily the anchor.
    """
    visits = {_visit(record) for record in records if record.case.implementation == anchor}
    paired = {record.case for record in records if _visit(record) in visits}
    # a failure counts wherever it happened, and a case that never met the anchor stays a row, without a ratio
    kept = [
        record for record in records if _visit(record) in visits or record.case not in paired or record.status != "ok"
    ]
    return summarise(kept, anchor)


def anchors(base: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """Return the implementations that were measured in both runs, in BASE's order."""
    in_new = {record.case.implementation for record in new if record.status == "ok"}
    in_base = dict.fromkeys(record.case.implementation for record in base if record.status == "ok")
    return [name for name in in_base if name in in_new]


def _visit(record: Record) -> Visit:
    return record.case.point, record.process
