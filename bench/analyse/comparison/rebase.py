"""The ratios of a run to another baseline than its own."""

from collections.abc import Sequence

import pandas as pd

from bench.analyse.summary import summarise
from bench.plan.case import Point
from bench.store.record import Record


def rebased(records: Sequence[Record], baseline: str) -> pd.DataFrame:
    """Return the table of results with ratios to this baseline, each paired within the rounds of one process.

    A case counts only the processes that measured this baseline too: an implementation that was added to a run later
    was measured with the run's own baseline, and not necessarily with this one.
    """
    replicates = {_replicate(record) for record in records if record.case.implementation == baseline}
    paired = {record.case for record in records if _replicate(record) in replicates}
    # every failure counts; a case that was never measured with the baseline stays a row, without a ratio
    kept = [
        record
        for record in records
        if _replicate(record) in replicates or record.case not in paired or record.status != "ok"
    ]
    return summarise(kept, baseline)


def common_implementations(base: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """Return the implementations that were measured in both runs, in BASE's order."""
    in_new = {record.case.implementation for record in new if record.status == "ok"}
    in_base = dict.fromkeys(record.case.implementation for record in base if record.status == "ok")
    return [name for name in in_base if name in in_new]


def _replicate(record: Record) -> tuple[Point, int]:
    """Return the point and the process of a record."""
    return record.case.point, record.process
