"""The records of a run: what was measured at each point, what is missing there, and the rows that follow."""

import dataclasses
from collections.abc import Sequence

import pandas as pd

from bench.analyse.analysed_run import in_order
from bench.analyse.rows import Row, grouped
from bench.analyse.summary import Summary
from bench.plan.case import CONTROL, Case, Point
from bench.plan.errors import CannotWrite
from bench.plan.sweep import Sweep
from bench.store import journal, table
from bench.store.journal import latest
from bench.store.record import Record


class Records:
    """The records of a run by point, those of its journal and the new ones, and the rows that follow from them."""

    def __init__(self, sweep: Sweep, contents: journal.Contents) -> None:
        self.contents = contents
        self._sweep = sweep
        self._by_point = grouped(contents.records, lambda record: record.case.point)
        self._fresh: set[tuple[Case, int]] = set()
        self._summary = Summary(sweep.baseline)
        self._unread = dict.fromkeys(self._by_point)  # the points of which the summary lacks records, in their order
        self._results: pd.DataFrame | None = None

    def of(self, point: Point) -> list[Record]:
        """Return the valid records of a point, in the order in which they were measured."""
        return latest(self._by_point.get(point, []))

    def next_process(self, point: Point) -> int:
        """Return the number of the point's next process."""
        return 1 + max((record.process for record in self._by_point.get(point, [])), default=-1)

    def failed(self, point: Point, *, retry_failed: bool = False) -> set[str]:
        """Return the implementations that failed at a point and are not tried again.

        A failure from an earlier session is tried again with `retry_failed`, or if the case was not its cause.
        """
        return {
            record.case.implementation
            for record in self.of(point)
            if record.status != "ok"
            and ((record.case, record.process) in self._fresh or (record.own_cause and not retry_failed))
        }

    def out_of_memory(self, point: Point) -> set[str]:
        """Return the implementations that ran out of memory at a point by their own fault."""
        records = self.of(point)
        return {record.case.implementation for record in records if record.status == "oom" and record.own_cause}

    def missing(self, point: Point, processes: int, *, retry_failed: bool = False) -> list[str]:
        """Return what needs more processes at a point, without what failed and is not tried again.

        A process without a result of the baseline gives no ratio, so it doesn't count, unless the baseline failed.
        """
        good: dict[str, set[int]] = {}
        for record in self.of(point):
            if record.status == "ok":
                good.setdefault(record.case.implementation, set()).add(record.process)
        failed, baseline = self.failed(point, retry_failed=retry_failed), self._sweep.baseline
        if baseline in self._sweep.implementations and baseline not in failed:
            good = {name: measured & good.get(baseline, set()) for name, measured in good.items()}
        return [name for name in self._sweep.measured if name not in failed and len(good.get(name, ())) < processes]

    def is_new(self, case: Case) -> bool:
        """Return whether a case has no successful record yet."""
        return not any(record.case == case and record.status == "ok" for record in self.of(case.point))

    def keep(self, records: Sequence[Record]) -> None:
        """Add the records of a replicate at one point; they are in the journal when this returns.

        Raises CannotWrite if they can't be written.
        """
        if not records:
            return
        point = records[0].case.point
        records = [
            dataclasses.replace(record, replicate_size=len(records), samples=record.samples.rounded())
            for record in in_order(records, self._sweep)
        ]
        try:
            self.add(records)
        except CannotWrite as error:
            message = f"{error}; process {records[0].process} of {point.name} is lost"
            has_journal = self.contents.path.exists()
            raise CannotWrite(f"{message}, what was measured before it is kept" if has_journal else message) from None
        self._fresh.update((record.case, record.process) for record in records)

    def add(self, records: Sequence[Record]) -> None:
        """Add records as they are; raises CannotWrite if they can't be written."""
        self.contents.append(records)
        for record in records:
            self._by_point.setdefault(record.case.point, []).append(record)
            self._unread[record.case.point] = None
        self._results = None

    @property
    def summary(self) -> Summary:
        """What all records say; points are in the journal's order, because sums depend on it."""
        for point in [*self._unread]:
            self._summary.put(in_order(self.of(point), self._sweep))
            del self._unread[point]
        return self._summary

    def results(self) -> pd.DataFrame:
        """Return the table of all results; the errors of each point follow from all, so a new record changes all."""
        if self._results is None:
            self.summary.pool()
            self._results = table.of_rows(self.summary.all_rows())
        return self._results

    def rows(self, point: Point) -> list[Row]:
        """Return the rows of the implementations of a measured point; their errors are by the points so far."""
        return [row for row in self.summary.rows(point) if row["implementation"] != CONTROL]

    @property
    def has_new(self) -> bool:
        """Whether this session has added records."""
        return bool(self._fresh)
