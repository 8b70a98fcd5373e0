"""The records of a run: what was measured at each point, what is missing there, and the rows that follow."""

import dataclasses
from collections.abc import Iterable, Sequence
from functools import lru_cache

import pandas as pd

from bench.analyse.analysed_run import in_order
from bench.analyse.rows import Row, grouped
from bench.analyse.summary import Summary
from bench.plan.case import CONTROL, Case, Point
from bench.plan.errors import CannotWrite
from bench.plan.sweep import Sweep
from bench.store import journal, table
from bench.store.journal import JournalEntry, latest
from bench.store.record import Record

LATEST = 64
"""The records that stay in memory after they were read, about those of a point: two callers read them."""


class Records:
    """The records of a run by point, those of its journal and the new ones, and the rows that follow from them.

    Of records all but the samples stay in memory; `of` reads these from the journal, but for the latest.
    """

    def __init__(self, sweep: Sweep, contents: journal.Contents) -> None:
        self.contents = contents
        self._sweep = sweep
        self._entries = grouped(contents.entries, lambda entry: entry.case.point)
        self._loaded = lru_cache(LATEST)(contents.load)
        self._fresh: set[JournalEntry] = set()
        self._summary = Summary(sweep.baseline)
        self._unread = dict.fromkeys(self._entries)  # the points of which the summary lacks records, in their order
        self._results: pd.DataFrame | None = None

    def of(self, point: Point) -> list[Record]:
        """Return the valid records of a point, in the order in which they were measured."""
        return [*map(self._loaded, self.entries(point))]

    def entries(self, point: Point) -> list[JournalEntry]:
        """Return the cases and facts of the valid records of a point, which need no reading."""
        return latest(self._entries.get(point, []))

    def next_process(self, point: Point) -> int:
        """Return the number of the point's next process."""
        return 1 + max((entry.process for entry in self._entries.get(point, [])), default=-1)

    def failed(self, point: Point, *, retry_failed: bool = False) -> set[str]:
        """Return the implementations that failed at a point and are not tried again.

        A failure from an earlier session is tried again with `retry_failed`, or if the case was not its cause.
        """
        return {
            entry.case.implementation
            for entry in self.entries(point)
            if entry.status != "ok" and (entry in self._fresh or (entry.line.own_cause and not retry_failed))
        }

    def out_of_memory(self, point: Point) -> set[str]:
        """Return the implementations that ran out of memory at a point by their own fault."""
        entries = self.entries(point)
        return {entry.case.implementation for entry in entries if entry.status == "oom" and entry.line.own_cause}

    def missing(self, point: Point, processes: int, *, retry_failed: bool = False) -> list[str]:
        """Return what needs more processes at a point, without what failed and is not tried again.

        A process without a result of the baseline gives no ratio, so it doesn't count, unless the baseline failed.
        """
        good: dict[str, set[int]] = {}
        for entry in self.entries(point):
            if entry.status == "ok":
                good.setdefault(entry.case.implementation, set()).add(entry.process)
        failed, baseline = self.failed(point, retry_failed=retry_failed), self._sweep.baseline
        if baseline in self._sweep.implementations and baseline not in failed:
            good = {name: measured & good.get(baseline, set()) for name, measured in good.items()}
        return [name for name in self._sweep.measured if name not in failed and len(good.get(name, ())) < processes]

    def is_new(self, case: Case) -> bool:
        """Return whether a case has no successful record yet."""
        return not any(entry.case == case and entry.status == "ok" for entry in self.entries(case.point))

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
            entries = self.contents.append(records)
        except CannotWrite as error:
            message = f"{error}; process {records[0].process} of {point.name} is lost"
            has_journal = self.contents.path.exists()
            raise CannotWrite(f"{message}, what was measured before it is kept" if has_journal else message) from None
        self._add(entries)
        self._fresh.update(entries)

    def copy(self, lines: Sequence[tuple[journal.Contents, JournalEntry]]) -> None:
        """Add lines of other journals as they are; raises CannotWrite if they can't be written."""
        places = self.contents.write([contents.content(entry.place) for contents, entry in lines])
        entries = [JournalEntry(entry.case, entry.line, place) for (_, entry), place in zip(lines, places, strict=True)]
        self.contents.entries += entries
        self._add(entries)

    def _add(self, entries: Iterable[JournalEntry]) -> None:
        for entry in entries:
            self._entries.setdefault(entry.case.point, []).append(entry)
            self._unread[entry.case.point] = None
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
